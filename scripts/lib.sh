# What several scripts need: where the tools are, and one way to speak. Sourced, never run.

tools_dir="${ADJUTANT_TOOLS_DIR:-$HOME/.cache/adjutant-tools}"
export PATH="$tools_dir/bin:$PATH"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$HOME/.cache/adjutant-target}"

say() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
}

# The newest PostgreSQL that has a server; Debian keeps it off the PATH.
find_postgres_bin() {
  local candidate
  while read -r candidate; do
    if [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ]; then
      echo "$candidate"
      return 0
    fi
  done < <(
    ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV
    dirname "$(command -v initdb || echo /nowhere/initdb)"
  )
  return 1
}

# ADJUTANT_TEST_CHROMIUM names another browser of the same family.
find_chromium() {
  if [ -n "${ADJUTANT_TEST_CHROMIUM:-}" ]; then
    echo "$ADJUTANT_TEST_CHROMIUM"
    return 0
  fi
  command -v chromium || command -v google-chrome || command -v chromium-browser
}

# The UI's build tool needs Node.js 20.19 or newer; Debian 12 packages 18.
have_node() {
  command -v npm >/dev/null && command -v node >/dev/null &&
    node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
}
