# Runs $TEXT with $SHELL_NAME in a copy of /tmp/tree, then says what became of the copy. One that a
# command has left as it was serves the next.
state() {
  find . -path ./.git -prune -o -name __pycache__ -prune -o -type f -exec md5sum {} + -o -printf '%y %m %l %p\n' | sort | md5sum
  env -i PATH="$PATH" HOME="$HOME" git status --porcelain --ignored | sort | md5sum
}
cd /workspace/repo
rm -rf /tmp/x /tmp/a.txt /tmp/out.txt
if ! [ -e /tmp/clean ]; then
  find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +
  cp -a /tmp/tree/. .
  state > /tmp/pristine
fi
rm -f /tmp/clean
env -u TEXT -u SHELL_NAME "$SHELL_NAME" -c "$TEXT" < /dev/null
echo "exit $?"
cd /workspace/repo
state | tee /tmp/state
if cmp -s /tmp/state /tmp/pristine; then touch /tmp/clean; fi
