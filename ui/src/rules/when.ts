// What a new rule asks of a call: where it acts, and what it is called with. Pure.

/** An argument by its name, and what it is like; `*` stands for any run of characters. */
export interface Named {
  name: string
  like: string
}
export interface When {
  folders?: string[]
  hosts?: string[]
  arguments?: Record<string, string>
}

const words = (text: string): string[] => text.split(',').map((one) => one.trim()).filter(Boolean)

/** What was filled in; an argument without a name is none. */
export function whenOf(folders: string, hosts: string, named: Named[]): When {
  const given = named.filter(({ name }) => name.trim() !== '').map(({ name, like }) => [name.trim(), like])
  return {
    ...(words(folders).length > 0 && { folders: words(folders) }),
    ...(words(hosts).length > 0 && { hosts: words(hosts) }),
    ...(given.length > 0 && { arguments: Object.fromEntries(given) as Record<string, string> }),
  }
}

/** `name=like`, as an address of the page carries it. */
export const namedText = ({ name, like }: Named): string => `${name}=${like}`
export function readNamed(text: string): Named {
  const at = text.indexOf('=')
  return at < 0 ? { name: text, like: '*' } : { name: text.slice(0, at), like: text.slice(at + 1) }
}

/** Longer than this nobody would write into a rule. */
const LONGEST = 200

/** The arguments of a call as a rule can name them. What is long, is no plain value, hides a secret or has a star of its own is left out. */
export function namedOf(given: Record<string, unknown>): Named[] {
  return Object.entries(given).flatMap(([name, value]): Named[] => {
    if (!['string', 'number', 'boolean'].includes(typeof value)) return []
    const like = String(value)
    const isPlain = like.length <= LONGEST && !/[*\n]|\[REDACTED:/.test(like)
    return isPlain && !name.includes('=') ? [{ name, like }] : []
  })
}
