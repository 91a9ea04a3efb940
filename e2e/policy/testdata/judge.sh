# Runs $TEXT with $SHELL_NAME in a copy of /tmp/tree, then says what became of the copy. One that a
# command has left as it was serves the next.
state() {
  find . -path ./.git -prune -o \( -name __pycache__ -o -name .gradle \) -prune -o -type f -exec md5sum {} + -o -printf '%y %m %l %p\n' | sort | md5sum
  env -i PATH="$PATH" HOME="$HOME" git status --porcelain --ignored | sort | md5sum
}
cd /workspace/repo
if ! [ -e /tmp/clean ]; then
  rm -rf /tmp/x /tmp/a.txt /tmp/out.txt
  find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +
  cp -a /tmp/tree/. .
  state > /tmp/pristine
fi
rm -f /tmp/clean
touch -d '-1 second' /tmp/before # times are coarse
echo --sort=path > /tmp/rg # several threads print in any order
env -u TEXT -u SHELL_NAME RIPGREP_CONFIG_PATH=/tmp/rg "$SHELL_NAME" -c "$TEXT" < /dev/null
echo "exit $?"
cd /workspace/repo
if [ -z "$(find . -cnewer /tmp/before -print -quit)" ]; then
  cp /tmp/pristine /tmp/state
else
  state > /tmp/state
fi
cat /tmp/state
if cmp -s /tmp/state /tmp/pristine && ! [ -e /tmp/x ] && ! [ -e /tmp/a.txt ] && ! [ -e /tmp/out.txt ]; then
  touch /tmp/clean
fi
