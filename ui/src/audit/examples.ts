// Searches that people ask for again and again.
export const EXAMPLES: [string, string][] = [
  ['Everything', ''],
  ['Refused', 'verdict:deny'],
  ['Asked', 'verdict:ask'],
  ['Failed', 'outcome:error'],
  ['The last day', 'since:24h'],
]
