# Builds the repository that the corpus's commands run in, at /tmp/tree. Deterministic.
set -eu
rm -rf /tmp/tree /tmp/agent-out /tmp/clean
mkdir -p /tmp/tree /tmp/agent-out
cd /tmp/tree
seq 300 > /tmp/agent-out/abc-1.log

mkdir -p src/sub src/generated docs scripts tools packages/core build dist git etc web tests
cat > src/app.ts <<'END'
import { util } from "../utils"; // TODO: foo(bar)
export const app = util("x"); // foo(bar)
END
echo 'export const util = (a: string) => a; // FIXME' > src/util.ts
printf 'package main\n\nfunc main() {} // TODO\n' > src/main.go
echo deep > src/sub/deep.txt
echo x > src/generated/x.ts
echo '# Old' > docs/old.md
echo '# Tree' > README.md
echo '# Other' > Other.md
printf 'line %d\n' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 > notes.txt
printf 'a\t1\nb\t2.5\nc\t3\n' > data.tsv
printf 'root:x:9\nuser:y:3\ngroup:z:7\n' > data.txt
printf 'a one\nb x|y\nc two\n' > log.txt
printf 'carol\nalice\nbob\nalice\nalice\n' > names.txt
printf 'a/b\nc/d/e\n' > paths.txt
printf '# conf\nprefix=/usr\netc=/usr/etc\n' > conf.txt
printf 'one\ntwo\n' > a.txt
printf 'one\n2\n' > b.txt
printf 'fed\n' > input.txt
printf 'old\n' > old.txt
printf 'root\n' > root.txt
printf 'data\n' > f
printf 'space\n' > 'my file.txt'
printf 'odd\n' > ./-odd-name.txt
printf '\000\001' > a.bin
printf '\000\002' > b.bin
printf 'log\n' > x.log
printf 'o\n' > build/x.o
printf 'js\n' > dist/index.js
printf 'core\n' > packages/core/index.ts
printf 'x\n' > 'a~'
printf 'x\n' > ..x
printf 'x\n' > etc/passwd
printf '.env\n' > .gitignore
printf 'KEY=\n' > .env.example
printf '{"name": "tree", "a": null, "scripts": {"build": "true"}}\n' > package.json
printf 'left==1\n' > requirements.txt
printf '#!/bin/bash\necho "setup $# $1"\n' > scripts/setup.sh
printf 'echo "check $# $2"\n' > scripts/check.sh
printf 'print("generated")\n' > tools/generate.py
printf 'print("x")\n' > print.py
printf 'console.log("gen")\n' > scripts/generate.js
ln -s README.md link-to-readme
gzip -nc notes.txt > notes.copy.gz
mkdir vendor
tar --sort=name --mtime=@0 -czf vendor.tgz docs
cat > fix.patch <<'END'
--- a/old.txt
+++ b/old.txt
@@ -1 +1 @@
-old
+new
END

export GIT_AUTHOR_DATE='2024-01-02T03:04:05Z' GIT_COMMITTER_DATE='2024-01-02T03:04:05Z'
git init -q -b main --template=
git config user.name tree
git config user.email tree@example.org
git add -A
git commit -qm 'Start'
git tag v1.0
printf 'three\n' >> a.txt
git commit -qam 'Count'
git gc -q
find . -exec touch -h -d @1704164645 {} +
