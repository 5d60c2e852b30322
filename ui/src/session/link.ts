// Secrets in links stand behind `#`, so that they reach no server and no log. They are taken out of the address at once.
export function takeSecret(name: string): string | null {
  const secret = new URLSearchParams(location.hash.slice(1)).get(name)
  if (secret !== null) history.replaceState(history.state, '', location.pathname + location.search)
  return secret
}
