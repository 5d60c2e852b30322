// Whether bytes are a text. Pure.
const reader = new TextDecoder('utf-8', { fatal: true })

/** The text that bytes are; null where they are none. */
export function textIn(bytes: BufferSource): string | null {
  try {
    const text = reader.decode(bytes)
    return text.includes('\0') ? null : text
  } catch {
    return null
  }
}
