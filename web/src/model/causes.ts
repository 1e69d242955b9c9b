import { type ClusterView, causeIn } from '../contract.ts'
import type { EventLine } from './events.ts'

/** Items that suffer of the same, as one line. */
export interface Cause<T> {
  readonly key: string
  /** of one item its own words; of several what they have in common */
  readonly text: string
  /** every item has these very words, so that listing them again would tell nothing */
  readonly isSame: boolean
  readonly items: readonly T[]
}

export interface Complaint {
  readonly code: string
  readonly text: string
  /** the same without what names the one who suffers */
  readonly shared: string
}

/** Of one code so many wordings may stand side by side; more of them become one line. */
const wordingsAtMost = 3

/** One line per cause, in the order in which the first of each comes. */
export function groupCauses<T>(items: readonly T[], complaintOf: (item: T) => Complaint): Cause<T>[] {
  const wordings = new Map<string, Set<string>>()
  for (const item of items) {
    const { code, shared } = complaintOf(item)
    wordings.set(code, (wordings.get(code) ?? new Set()).add(shared))
  }
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const { code, shared } = complaintOf(item)
    const isMany = (wordings.get(code)?.size ?? 0) > wordingsAtMost
    const key = isMany ? code : `${code} ${shared}`
    const group = groups.get(key)
    if (group) group.push(item)
    else groups.set(key, [item])
  }
  return [...groups].map(([key, members]) => {
    const [first] = members.map(complaintOf)
    const isSame = key !== first?.code
    const text = members.length === 1 ? first?.text : isSame ? first?.shared : wordsOf(first?.code ?? '')
    return { key, text: text ?? '', isSame, items: members }
  })
}

const wordsOf = (code: string): string => code.replaceAll(/[_-]+/g, ' ')

/** What a cluster says of itself without its names and its address: equal where the trouble is equal. */
export function sharedText(
  message: string,
  { name, displayName, endpoint }: Pick<ClusterView, 'name' | 'displayName' | 'endpoint'>,
): string {
  let text = causeIn(message)
  const host = endpoint.replace(/^\w+:\/\//, '').replace(/\/$/, '')
  for (const own of [endpoint.replace(/\/$/, ''), host]) if (own !== '') text = text.replaceAll(own, 'its API')
  for (const own of [displayName, name]) {
    if (own === '') continue
    const word = own.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
    text = text
      .replace(new RegExp(`^(?:cluster )?${word}(?![\\w.-])[:,]?\\s*`, 'i'), '')
      .replaceAll(new RegExp(`(?<![\\w.-])${word}(?![\\w.-])`, 'g'), 'it')
  }
  return text
}

/** What turned within minutes of each other in the same way, as one line. */
export interface ChangeGroup {
  readonly lines: readonly [EventLine, ...EventLine[]]
  /** several clusters with the same words, or one cluster with several of a kind */
  readonly of: 'one' | 'clusters' | 'kind'
}

const togetherMs = 5 * 60_000

/** @param lines newest first; the groups are too */
export function groupChanges(lines: readonly EventLine[]): ChangeGroup[] {
  const byWords = gather(lines, ({ need, text }) => `${need} ${text}`)
  const alone = byWords.flatMap((group) => (group.length === 1 ? [group[0]] : []))
  const groups = [
    ...byWords
      .filter((group) => group.length > 1)
      .map((group): ChangeGroup => ({ lines: group, of: clustersOf(group) > 1 ? 'clusters' : 'kind' })),
    ...gather(alone, ({ cluster, type, need }) => `${cluster} ${type} ${need}`).map(
      (group): ChangeGroup => ({ lines: group, of: group.length > 1 ? 'kind' : 'one' }),
    ),
  ]
  return groups.sort((a, b) => b.lines[0].at - a.lines[0].at)
}

/** How many clusters the lines are of: one that turned twice is one. */
export const clustersOf = (lines: readonly EventLine[]): number => new Set(lines.map(({ cluster }) => cluster)).size

/** Lines of one key, each no more than some minutes from the one before. */
function gather(lines: readonly EventLine[], keyOf: (line: EventLine) => string): [EventLine, ...EventLine[]][] {
  const groups: [EventLine, ...EventLine[]][] = []
  const open = new Map<string, [EventLine, ...EventLine[]]>()
  for (const line of lines) {
    const key = keyOf(line)
    const group = open.get(key)
    if (group && (group.at(-1)?.at ?? 0) - line.at <= togetherMs) group.push(line)
    else {
      const begun: [EventLine, ...EventLine[]] = [line]
      open.set(key, begun)
      groups.push(begun)
    }
  }
  return groups
}
