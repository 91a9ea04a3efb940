package docker_test

import (
	"flag"
	"testing"
	"time"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/docker/dockertest"
)

// toolchains runs every row of the compatibility suite; the image then has to hold them all.
var toolchains = flag.Bool("toolchains", false, "run every toolchain of the compatibility suite (make compat-check)")

// toolchain is ordinary work that has to go through every control of a sandbox.
type toolchain struct {
	name, needs string // needs is a program that the small image lacks; "" is in it
	work        string
}

const commit = `git -c user.name=T -c user.email=t@example.com commit -q -m`

func basics() []toolchain {
	return []toolchain{
		{"git: init, commit, gc, fsck", "", `git init -q r && cd r && echo a > a && git add . && ` + commit + ` one && git gc -q && git fsck`},
		{"git: clone, branch, merge, worktree, push", "", `git init -q -b main o && (cd o && echo a > a && git add . && ` + commit + ` one) && git clone -q o c &&
			cd c && git checkout -q -b b && echo b > b && git add . && ` + commit + ` two && git worktree add -q ../w main && cd ../w && git merge -q b &&
			git push -q origin HEAD:refs/heads/x && test -f b`},
		{"bash: jobs, traps, limits, pipes", "", `for i in 1 2 3; do (sleep 0; echo $i) & done; wait; ulimit -n 1024; nice -n 5 true; timeout 5 true; mkfifo p
			trap 'echo x' USR1; kill -USR1 $$; cat <(echo in) | tee out | grep -q in`},
		{"coreutils, find, xargs, sed, awk", "", `yes | head -n 100000 | sort -u | xargs -P 4 -n 1 echo | tee out | wc -l
			find /usr/bin -name env | sed s/x/y/ | awk '{print length}' | sort -n | tail -n 1; install -m 755 out x; cp -a x y; truncate -s 1M z; stat -f .`},
		{"tar, gzip, links, modes", "", `mkdir -p t/d && echo a > t/d/a && ln -s d/a t/l && ln t/d/a t/h && chmod 600 t/d/a && tar -czf t.tgz t && mkdir u &&
			tar -xpzf t.tgz -C u && test "$(stat -c %a u/t/d/a)" = 600 && cmp u/t/h t/h`},
		{"python: processes, threads, sockets, memory maps", "", `python3 -c '
import multiprocessing as m, socket, threading, mmap, tempfile, subprocess, asyncio, sqlite3, select
with m.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); c = socket.create_connection(s.getsockname()); s.accept()[0].send(b"x"); assert c.recv(1) == b"x"
a, b = socket.socketpair(); a.send(b"y"); assert b.recv(1) == b"y"
t = threading.Thread(target=print); t.start(); t.join()
f = tempfile.TemporaryFile(); f.truncate(8192); mmap.mmap(f.fileno(), 8192)[0] = 1
assert subprocess.run(["true"]).returncode == 0
asyncio.run(asyncio.sleep(0)); sqlite3.connect("db").execute("create table x (y)"); select.epoll(); m.Lock()'`},
		{"perl: fork and wait", "", `perl -e 'my $p = fork; if (!$p) { exit 7 } waitpid $p, 0; exit($? >> 8 == 7 ? 0 : 1)'`},
		{"ripgrep", "", `echo needle > hay && rg -q needle && rg --files | grep -q hay`},
	}
}

// larger are those of the full image, then those of the one that make compat-check builds.
func larger() []toolchain {
	return []toolchain{
		{"node: workers, a server, a watcher", "node", `node -e '
const { Worker } = require("worker_threads"), http = require("http"), { execSync } = require("child_process"), fs = require("fs");
new Worker("require(\"worker_threads\").parentPort.postMessage(1)", { eval: true }).on("message", () => {
  const s = http.createServer((q, r) => r.end("hi")).listen(0, "127.0.0.1", () => http.get({ host: "127.0.0.1", port: s.address().port }, r => r.on("data", d => {
    if (String(d) !== "hi" || String(execSync("echo x")) !== "x\n") process.exit(1);
    fs.watch("."); process.exit(0);
  })));
})'`},
		{"npm: install a tarball, run a script", "npm", `mkdir lib app && (cd lib && npm init -y && echo "module.exports = 7" > index.js && npm pack) && cd app &&
			npm init -y && npm install --no-audit --no-fund --offline ../lib/lib-1.0.0.tgz && echo 'console.log(require("lib"))' > seven.js && npm pkg set scripts.seven='node seven.js' && npm run -s seven | grep -qx 7`},
		{"python: a virtual environment", "pip3", `python3 -m venv v && v/bin/pip --version && v/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'`},
		{"gcc: compile, link, threads and forks", "gcc", `cat > a.c <<'EOF'
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static void *run(void *p) { return p; }
int main(void) { pthread_t t; int s; if (pthread_create(&t, 0, run, 0) || pthread_join(t, 0)) return 1; if (!fork()) _exit(7); wait(&s); printf("%d\n", WEXITSTATUS(s)); return 0; }
EOF
gcc -O2 -pthread a.c -o a && ./a | grep -qx 7`},
		{"make: a parallel build", "make", `printf 'all: a b c\n\na b c:\n\techo $@ > $@\n' > Makefile && make -s -j4 && test -f c`},
		{"jq, curl, xz, file", "jq", `echo '{"a":7}' | jq -e '.a == 7' && curl -s file:///etc/hostname | grep -q sandbox && echo x | xz | xz -d | grep -q x && file /bin/bash | grep -q ELF`},
		{"go: build and test a module", "go", `mkdir m && cd m && go mod init example.com/m &&
			printf 'package main\n\nimport "fmt"\n\nfunc main() { c := make(chan int); go func() { c <- 7 }(); fmt.Println(<-c) }\n' > main.go &&
			printf 'package main\n\nimport "testing"\n\nfunc TestX(t *testing.T) { t.TempDir() }\n' > main_test.go && go build -o m . && ./m | grep -qx 7 && go test .`},
		{"cargo: build and test a crate", "cargo", `cargo new --vcs none c && cd c && cargo build --offline && cargo test --offline -q && cargo run --offline -q | grep -q Hello`},
		{"java: compile and run", "javac", `cat > A.java <<'EOF'
public class A { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> {}); t.start(); t.join(); System.out.println(new ProcessBuilder("true").start().waitFor() + 7); } }
EOF
javac A.java && java -Xmx128m A | grep -qx 7`},
		{"ruby: rake, forks", "ruby", `echo 'task(:default) { pid = fork { exit! 7 }; Process.wait pid; exit 1 unless $?.exitstatus == 7 }' > Rakefile && rake -q`},
		{"cmake", "cmake", `echo 'int main(void) { return 0; }' > a.c && printf 'cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\n' > CMakeLists.txt && cmake -B b . && cmake --build b && b/a`},
		{"typescript, prettier, jest", "tsc", `echo 'const x: number = 7;' > a.ts && tsc a.ts && prettier --check a.ts && echo 'test("x", () => expect(7).toBe(7))' > a.test.js && echo '{}' > package.json && jest -w 2`},
	}
}

// What ordinary work needs must go through every control.
func TestCompatibility_ToolchainsWork(t *testing.T) {
	t.Parallel()
	s := spec()
	s.Limits.MemoryBytes, s.Limits.PIDs, s.Limits.CPUs = 2<<30, 512, 2 // as sessions have
	runToolchains(t, start(t, dockertest.New(t), s), append(basics(), larger()...))
}

// runToolchains runs the rows whose programs the image has.
func runToolchains(t *testing.T, b box, rows []toolchain) {
	t.Helper()
	ran, absent := 0, 0
	for _, c := range rows {
		if c.needs != "" {
			if exit, _ := b.sh(t, "command -v "+c.needs); exit != 0 {
				absent++
				if *toolchains {
					t.Errorf("%s: the image has no %s", c.name, c.needs)
				}
				continue
			}
		}
		ran++
		result, err := b.Run(t.Context(), core.Command{Shell: "set -e; cd $(mktemp -d -p /workspace/repo)\n" + c.work, Timeout: 10 * time.Minute})
		if err != nil || result.Exit != 0 {
			t.Errorf("%s: exit %d, %v: %s%s", c.name, result.Exit, err, result.Head, result.Tail)
		}
	}
	t.Logf("compatibility: %d run, %d need a larger image", ran, absent)
}
