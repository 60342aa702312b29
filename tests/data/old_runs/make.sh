#!/bin/bash
# Runs as an earlier version leaves them: bash make.sh COMMIT PYTHON > COMMIT.tar.gz
#
# In the archive: study (a workspace with every file that the runs rest on), whole (a run that is done),
# part (one that stopped after its histories) and, where that version has judges, labels.
set -euo pipefail
commit=$1 python=$2
top=$(git rev-parse --show-toplevel)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/source" "$folder/made"
git -C "$top" archive "$commit" engine norms personas checklists judges experiments | tar -x -C "$folder/source"
export PYTHONPATH=$folder/source/engine
cd "$folder/made"
"$python" -m habitus new study >&2
cat > study/personas/openers/everyday.yaml <<'END'
id: everyday
kind: everyday
openers:
  - {id: everyday-1, area: home, text: "how do i get candle wax off a table"}
END
printf 'demonyms: [korean]\ncountries: [korea]\nreligions: [buddhism]\nfaiths: [buddhist]\npatterns: ["i am {demonym}"]\n' \
    > lexicon.yaml
mkdir -p study/judges/history_verifier
mv lexicon.yaml study/judges/history_verifier/
for file in experiments/settings judges/history_verifier checklists/prompts personas/prompts; do
    mkdir -p "study/$file"
    cp -n "$folder/source/$file"/* "study/$file/"
done
set=(--set personas=2 --set history.exchanges='[2,2]' --set history.domain_sessions=1
    --set history.everyday_sessions=0 --set results.draws=100 --set 'settings=["none","hist","norms"]')
cd study
"$python" -m habitus run experiments/first.yaml --out ../whole --quiet "${set[@]}" >&2
"$python" -m habitus run experiments/first.yaml --out ../part --stage histories --quiet "${set[@]}" >&2
cd ..
kept="study whole part"
printf 'backend: scripted\noptions: {script: helpers}\n' > judge.yaml
if "$python" -m habitus judge --help > /dev/null 2>&1; then
    "$python" -m habitus judge whole --model ./judge.yaml --judges positioning --out labels --quiet >&2
    kept="$kept labels judge.yaml"
fi
rm -f */lock
tar --sort=name --owner=0 --group=0 --mtime=2026-11-30 -cf - $kept | gzip -9n
