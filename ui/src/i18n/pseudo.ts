// A made-up locale: accents show which texts are not translated, brackets show which are cut off.
const ACCENTS: Record<string, string> = { a: 'á', e: 'é', i: 'í', o: 'ó', u: 'ú', A: 'Á', E: 'É', O: 'Ó', n: 'ñ', c: 'ç', s: 'š' }

export function pseudo(text: string): string {
  return `⟦${text.replace(/[aeiouAEOncs]/g, (letter) => ACCENTS[letter] ?? letter)}⟧`
}
