// Which entries fit what was typed, best first: the beginning of the label, of a word, somewhere inside, letters in order.
export function rank<T extends { label: string }>(all: T[], wanted: string): T[] {
  const typed = wanted.trim().toLowerCase()
  if (!typed) return all
  return all
    .map((entry, place) => ({ entry, place, fit: fitOf(entry.label.toLowerCase(), typed) }))
    .filter(({ fit }) => fit < Infinity)
    .sort((a, b) => a.fit - b.fit || a.place - b.place)
    .map(({ entry }) => entry)
}

function fitOf(label: string, typed: string): number {
  if (label.startsWith(typed)) return 0
  const inside = label.indexOf(typed)
  if (inside > 0) return label[inside - 1] === ' ' ? 1 : 2
  let at = 0
  for (const letter of typed) {
    at = label.indexOf(letter, at) + 1
    if (at === 0) return Infinity
  }
  return 3
}
