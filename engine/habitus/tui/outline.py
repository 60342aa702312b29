"""The tree on the left: nodes that the model made, opened as they are needed.

Branches get their children when they are opened, so that a tree of thousands costs nothing. After a
change of the run or the filter what was open stays open, and the cursor stays on its item.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from rich.style import Style
from rich.text import Text, TextType
from textual.binding import Binding, BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from habitus.browsing import Node
from habitus.content.visible import safe_text

Marked = Callable[[Node], bool]


class Outline(Tree[Node]):
    """A tree of nodes. ``marked`` says which ones have a mark or a note on them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "cursor_down", show=False),
        Binding("k,up", "cursor_up", show=False),
        Binding("l,right", "open", show=False),
        Binding("h,left", "close", show=False),
        Binding("enter", "select_cursor", show=False),
        Binding("g,home", "scroll_home", show=False),
        Binding("G,end", "scroll_end", show=False),
        Binding("pagedown,space", "page_down", show=False),
        Binding("pageup,b", "page_up", show=False),
    ]
    ICON_NODE = "+ "
    ICON_NODE_EXPANDED = "- "

    def __init__(self, name: str, marked: Marked) -> None:
        super().__init__(Text("run"), id=name)
        self.show_root = False
        self.show_guides = False
        self.guide_depth = 2
        self.auto_expand = False
        self._marked = marked
        self._roots: tuple[Node, ...] = ()

    def process_label(self, label: TextType) -> Text:
        """Labels come as ``Text``; a plain string is never read as markup."""
        return label if isinstance(label, Text) else Text(label)

    def render_label(self, node: TreeNode[Node], base_style: Style, style: Style) -> Text:
        """The sign of a branch, a star where there is a mark, and the name."""
        text = Text(style=style)
        if node.allow_expand:
            text.append(self.ICON_NODE_EXPANDED if node.is_expanded else self.ICON_NODE)
        if node.data is not None and self._marked(node.data):
            text.append("* ", base_style + Style(bold=True))
        text.append_text(self.process_label(node.label))
        return text

    @property
    def cursor_key(self) -> str:
        """The key of the node under the cursor."""
        node = self.cursor_node if self._roots else None
        return node.data.key if node is not None and node.data is not None else ""

    def show_nodes(self, nodes: tuple[Node, ...], go_to: str = "") -> None:
        """Show a tree; ``go_to`` is the key to put the cursor on, by default where it was."""
        if nodes == self._roots and not go_to:
            return
        opened = {n.data.key for n in self._all(self.root) if n.is_expanded and n.data}
        wanted = go_to or self.cursor_key
        self._roots = nodes
        self.clear()
        self.root.expand()
        for node in nodes:
            self._add(self.root, node, opened)
        self.go_to(wanted)

    def go_to(self, key: str) -> None:
        """Put the cursor on a node, opening what it lies under; on the first leaf if it is gone."""
        path = _path(self._roots, key) or _first(self._roots)
        at = self.root
        for node in path:
            self._fill(at)
            found = next((child for child in at.children if child.data == node), None)
            if found is None:
                break
            if not at.is_expanded:
                at.expand()
            at = found
        if at is not self.root:
            _ = self.last_line  # builds the lines, so that the node has one
            self.move_cursor(at)
            if not self.size.height:  # not on the screen yet: nothing to scroll to
                self.scroll_to(0, 0, animate=False, immediate=True)

    def on_resize(self) -> None:
        """Keep the cursor on the screen."""
        self.scroll_to_line(self.cursor_line, animate=False)

    def step(self, by: int, leaves: list[Node]) -> bool:
        """Go to the next or the last leaf, wherever the cursor is; whether there is one."""
        keys = [leaf.key for leaf in leaves]
        if not keys:
            return False
        if self.cursor_key not in keys:
            self.go_to(keys[0])
            return True
        at = keys.index(self.cursor_key) + by
        if not 0 <= at < len(keys):
            return False
        self.go_to(keys[at])
        return True

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Node]) -> None:
        """Add what lies under a branch when it is opened."""
        self._fill(event.node)

    def action_open(self) -> None:
        """Open the branch under the cursor, or step into it."""
        node = self.cursor_node
        if node is None or not node.allow_expand:
            return
        if node.is_expanded:
            self.action_cursor_down()
        else:
            self._fill(node)
            node.expand()

    def action_close(self) -> None:
        """Close the branch under the cursor, or go to the one above."""
        node = self.cursor_node
        if node is None:
            return
        if node.allow_expand and node.is_expanded:
            node.collapse()
        elif node.parent is not None and node.parent is not self.root:
            self.move_cursor(node.parent)

    def redraw(self) -> None:
        """Show marks that have changed."""
        self._invalidate()
        self.refresh()

    def _add(self, under: TreeNode[Node], node: Node, opened: Iterable[str]) -> None:
        label = Text(safe_text(node.label, lines=False))
        if not node.children:
            under.add_leaf(label, node)
            return
        added = under.add(label, node)
        if node.key in opened:
            self._fill(added, opened)
            added.expand()

    def _fill(self, branch: TreeNode[Node], opened: Iterable[str] = ()) -> None:
        if branch.data is not None and not branch.children:
            for child in branch.data.children:
                self._add(branch, child, opened)

    def _all(self, branch: TreeNode[Node]) -> Iterable[TreeNode[Node]]:
        for child in branch.children:
            yield child
            yield from self._all(child)


def _path(nodes: tuple[Node, ...], key: str) -> list[Node]:
    """The nodes from the top down to one with a key."""
    for node in nodes:
        if node.key == key:
            return [node]
        below = _path(node.children, key)
        if below:
            return [node, *below]
    return []


def _first(nodes: tuple[Node, ...]) -> list[Node]:
    return [nodes[0], *_first(nodes[0].children)] if nodes else []
