/** Words of the command line that are known before anything else is loaded. */

/** How `get` prints; `wide`: a table with every column there is. */
export const outputFormats = ['table', 'wide', 'json', 'yaml'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** What `get` prints, by its plural, with its singular. */
export const nouns = {
  clusters: 'cluster',
  nodes: 'node',
  namespaces: 'namespace',
  deployments: 'deployment',
  operators: 'operator',
  'cluster-operators': 'cluster-operator',
  events: 'event',
  types: 'type',
  agents: 'agent',
} as const
export type Noun = keyof typeof nouns
export const nounNames = Object.keys(nouns) as readonly Noun[] // the keys of a record of every noun

/** Singular or plural, in any case. */
export function nounOf(text: string): Noun | undefined {
  const asked = text.toLowerCase()
  return nounNames.find((noun) => noun === asked || nouns[noun] === asked)
}

/** The word that was most likely meant; undefined where none is near. */
export function nearest(text: string, words: readonly string[]): string | undefined {
  const asked = text.toLowerCase()
  const ranked = words
    .map((word) => ({ word, slips: slipsBetween(asked, word.toLowerCase()) }))
    .sort((left, right) => left.slips - right.slips)
  const [best] = ranked
  if (best && best.slips <= Math.max(1, Math.floor(asked.length / 3))) return best.word
  return asked.length > 1 ? words.find((word) => word.startsWith(asked)) : undefined
}

/** How many letters must be added, left out, replaced or swapped with their neighbour to make one of the other. */
function slipsBetween(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= one.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= other.length; j++) {
      const isSwap = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      const kept = at(i - 1, j - 1) + (one[i - 1] === other[j - 1] ? 0 : 1)
      row[j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, kept, isSwap ? at(i - 2, j - 2) + 1 : kept)
    }
  }
  return at(one.length, other.length)
}

/** Shells whose Tab key we can teach. */
export const shells = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof shells)[number]
