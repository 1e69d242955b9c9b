import {
  ApiProblem,
  type Client,
  type FleetRowsQuery,
  type FleetRowView,
  type HeldRows,
  type RowsAgeView,
  type RowsStreamQuery,
  type SourceView,
  type TypeOnClusterView,
  type TypeView,
} from '#http'
import { AUTHORITY_LOST, absenceOf, absenceWord, type JsonValue, momentOf, TWO_AGENTS } from '#model'
import { cellText } from './cell-text.ts'
import { age, type Column } from './format.ts'
import { clustersAsked, emptyNote, requireAll, staleNotes } from './get-rows.ts'
import { NotFoundError } from './not-found.ts'
import { nounWords, wordMeant } from './words.ts'

/** Rows of a kind that the hub names: pods, and whatever MetricSources declare. */
export interface KindRow extends FleetRowView {
  /** when it was true; null: it never was read */
  readonly observedAt: number | null
  /** when what it uses was measured; null: it was not, or that is not for us */
  readonly measuredAt: number | null
  /** policies hide something of its cluster */
  readonly filtered: boolean
  /** what things of its cluster use is for us */
  readonly hasUsage: boolean
}

export interface KindWish {
  /** plural, singular or short name */
  readonly kind: string
  readonly names: readonly string[]
  readonly clusters: readonly string[]
  /** only clusters in this set */
  readonly set?: string
  readonly namespace?: string
  readonly selector?: string
  /** those with most in this column, and how many of them; 0: all */
  readonly most?: { readonly by: string; readonly count: number }
}

export interface KindRows {
  readonly kind: SourceView
  readonly rows: readonly KindRow[]
  readonly on: readonly TypeOnClusterView[]
  readonly notes: readonly string[]
  /** the same as a stream is asked for it, names left aside */
  readonly asked: RowsStreamQuery
}

/**
 * Rows, worst first where the kind says what is bad, or in the order it has.
 * @throws NotFoundError where no kind, cluster or row is called so; ApiProblem where the hub refuses or cannot be reached
 */
export async function rowsOfKind(client: Client, wish: KindWish, now: number): Promise<KindRows> {
  const type = await typeMeant(client, wish.kind)
  const [kind] = type.sources
  if (!kind) throw new NotFoundError(`nothing declares ${type.type} any more`)
  if (wish.namespace !== undefined && kind.scope !== 'Namespaced')
    throw new NotFoundError(`${type.type} stand in no namespace: leave out -n`)
  const isOfFleet = kind.scope === 'Fleet'
  const isInSets = !isOfFleet || kind.columns.some(({ name }) => name === 'sets')
  if (wish.clusters.length > 0 && isOfFleet)
    throw new NotFoundError(
      `${type.type} stand on no cluster: leave out -c${isInSets ? `, or ask for them by name: get ${type.type} ${wish.clusters.join(' ')}` : ''}`,
    )
  if (wish.set !== undefined && !isInSets)
    throw new NotFoundError(`${type.type} stand on no cluster, and are in no set: leave out --set`)
  const clusters = isOfFleet ? { all: [], chosen: [] } : await clustersAsked(client, wish.clusters)
  const { most } = wish
  const isNewestFirst = kind.sort.startsWith('-')
  const usual = isNewestFirst ? kind.sort.slice(1) : kind.columns.find(({ health }) => health !== null)?.name
  const sort = most?.by ?? usual
  const asked = {
    type: type.type,
    ...(wish.clusters.length > 0 && { cluster: wish.clusters }),
    ...(wish.set !== undefined && { set: wish.set }),
    ...(wish.namespace !== undefined && { namespace: wish.namespace }),
    ...(wish.selector !== undefined && { labels: wish.selector }),
  }
  const { type: _, ...filters } = asked
  const query: FleetRowsQuery = {
    limit: Math.min(most?.count || 1000, 1000),
    aggregations: false,
    ...(sort !== undefined && { sort }),
    ...((most || isNewestFirst) && { order: 'desc' }),
    ...filters,
  }
  const items: FleetRowView[] = []
  const on = new Map<string, TypeOnClusterView>()
  const isEnough = () => most !== undefined && most.count > 0 && items.length >= most.count
  let total = 0
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await client.fleetRows(type.type, { ...query, ...(cursor && { cursor }) })
    items.push(...page.items)
    for (const one of page.clusters) on.set(one.cluster, one)
    total = page.total
    cursor = isEnough() ? null : page.next
  }
  requireAll(
    kind.names[1] ?? type.type,
    wish.names,
    items.flatMap(({ name, id }) => [name, id]),
  )
  const rows = namedRows(isEnough() ? items.slice(0, most?.count) : items, wish.names).map((row): KindRow => {
    const seen = on.get(row.cluster)
    const measuredAt = seen?.measured?.freshness?.observedAt ?? null
    const observedAt = seen?.part.freshness?.observedAt ?? null
    return { ...row, observedAt, measuredAt, filtered: seen?.filtered ?? false, hasUsage: seen?.measured !== undefined }
  })
  const isOfAll = clusters.chosen.length === clusters.all.length
  const unread = [...on.values()].flatMap(({ cluster, part: { outcome, message, freshness } }) =>
    // What a kind of cluster does not have is no news about it, but to who asks for that.
    outcome === 'complete' || (outcome === 'absent' && (rows.length > 0 || isOfAll))
      ? []
      : [unreadWords(type.type, { cluster, outcome, message, freshness })],
  )
  const unmeasured = [...on.values()].flatMap((one) =>
    rows.length > 0 && one.part.outcome === 'complete' ? (unmeasuredWords(type.type, one) ?? []) : [],
  )
  const inSet = wish.set === undefined ? '' : ` in the set ${wish.set}`
  const none = isOfFleet ? `no ${type.type}${inSet} that you may see` : emptyNote(type.type, clusters)
  const empty = rows.length > 0 ? [] : [none]
  const taken = await takenNotes(client, wish.kind, kind)
  const more = rows.length < total && most ? [`${rows.length} of ${total} ${type.type}; --limit 0 prints all`] : []
  const members = type.type === 'members' ? memberNotes(rows, wish.names.length > 0) : []
  const notes = [...taken, ...empty, ...more, ...unread, ...unmeasured, ...members, ...staleNotes(clusters.chosen, now)]
  const first = most && sort !== undefined && most.count > 0 && most.count <= 1000 ? { sort, limit: most.count } : null
  const streamed: RowsStreamQuery = { ...asked, ...(first && { ...first, order: 'desc' }) }
  return { kind, rows, on: [...on.values()], notes, asked: streamed }
}

function unreadWords(
  type: string,
  { cluster, outcome, message, freshness }: Pick<RowsAgeView, 'cluster' | 'outcome' | 'message' | 'freshness'>,
): string {
  const at = outcome === 'unreachable' && freshness ? `as of ${momentText(freshness.observedAt)}` : outcome
  return `${cluster && `${cluster}: `}${type} are ${at}: ${message}`
}

const momentText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** Why numbers of what rows use are older than the rows. A cluster that measures nothing is no news, but to who asks for numbers. */
const unmeasuredWords = (type: string, { cluster, measured }: Pick<RowsAgeView, 'cluster' | 'measured'>) =>
  measured && measured.outcome !== 'complete' && measured.outcome !== 'absent'
    ? usageWords(type, cluster, measured)
    : undefined

/** Why there are no numbers of what the rows of a cluster use, or old ones. */
export function usageWords(
  type: string,
  cluster: string,
  { outcome, message, freshness }: NonNullable<RowsAgeView['measured']>,
): string {
  const at = freshness ? `as of ${momentText(freshness.observedAt)}` : outcome
  return `${cluster}: what its ${type} use is ${at}: ${message}`
}

/** What is not known now of the rows that a stream holds, by cluster ('': of the fleet). What a cluster does not have is no news. */
export const unreadNotes = (type: string, { ages }: HeldRows): ReadonlyMap<string, string> =>
  new Map(
    [...ages.values()].flatMap((age) => {
      const isRead = age.outcome === 'complete' || age.outcome === 'absent'
      const words = isRead ? unmeasuredWords(type, age) : unreadWords(type, age)
      return words === undefined ? [] : [[age.cluster, words] as const]
    }),
  )

/** Names that a note begins with at most. */
const MOST_NAMES = 5

/** Why members are not served: of all that are locked out in one line, and of each that was asked for by name; and whose key may be stolen. */
function memberNotes(rows: readonly FleetRowView[], isNamed: boolean): readonly string[] {
  const told = rows.filter(({ values: { state, message } }) => state !== 'available' && typeof message === 'string')
  const lockedOut = rows.filter(({ values: { reason } }) => reason === AUTHORITY_LOST)
  const [first] = lockedOut
  const doubled = rows.filter(({ values: { reason } }) => reason === TWO_AGENTS)
  const names = lockedOut.slice(0, MOST_NAMES).map(({ name }) => name)
  const more = lockedOut.length > MOST_NAMES ? ` and ${lockedOut.length - MOST_NAMES} more` : ''
  return [
    ...(first ? [`${names.join(', ')}${more}: ${first.values.message}`] : []),
    ...(isNamed ? [...new Set([...doubled, ...told])] : doubled.slice(0, MOST_NAMES))
      .filter((row) => !lockedOut.includes(row))
      .map(({ name, values: { message } }) => `${name}: ${message}`),
  ]
}

/** @param names none: all of them */
function namedRows(rows: readonly FleetRowView[], names: readonly string[]): readonly FleetRowView[] {
  return names.length === 0 ? rows : rows.filter(({ name, id }) => names.includes(name) || names.includes(id))
}

/** Rows as a stream holds them. */
export function heldRows({ rows, ages }: HeldRows, names: readonly string[]): readonly KindRow[] {
  return namedRows([...rows.values()], names).map((row): KindRow => {
    const age = ages.get(row.cluster)
    const observedAt = age?.freshness?.observedAt ?? null
    const measuredAt = age?.measured?.freshness?.observedAt ?? null
    return { ...row, observedAt, measuredAt, filtered: age?.filtered ?? false, hasUsage: age?.measured !== undefined }
  })
}

/** What the hub takes a word for. */
async function typeMeant(client: Client, word: string): Promise<TypeView> {
  try {
    return await client.type(word)
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.code !== 'type_not_found') throw error
    throw new NotFoundError(await nothingCalled(client, word))
  }
}

async function nothingCalled(client: Client, word: string): Promise<string> {
  const { items } = await client.types()
  const near = wordMeant(
    word,
    [...nounWords, ...items.flatMap(namesOf)].filter((name) => name !== word),
  )
  const all = [...new Set([...nounWords.slice(0, nounWords.length / 2), ...items.map(({ type }) => type)])].sort()
  return `the hub has nothing called ${JSON.stringify(word)}; ${near === undefined ? `there are ${all.join(', ')}` : `did you mean ${near}?`}`
}

const namesOf = ({ type, sources }: TypeView): string[] => [type, ...sources.flatMap(({ names }) => names)]

/** Where a MetricSource has a name that a built-in kind is called by too: which of them was meant is said. */
async function takenNotes(client: Client, word: string, { id, isDeclared }: SourceView): Promise<readonly string[]> {
  if (!isDeclared) return []
  const { items } = await client.types()
  const asked = word.toLowerCase()
  const other = items.find(
    (one) => one.sources[0]?.isDeclared === false && namesOf(one).some((name) => name.toLowerCase() === asked),
  )
  return other ? [`${word} is declared by MetricSource ${id}; the built-in kind is ${other.type}`] : []
}

/** `AS-OF` is how old what we know is, `AGE` how old the thing itself is. */
export function kindColumns({ columns, scope }: SourceView, now: number): readonly Column<KindRow>[] {
  return [
    ...(scope === 'Fleet' ? [] : [{ header: 'CLUSTER', value: ({ cluster }: KindRow) => cluster }]),
    ...(scope === 'Namespaced'
      ? [{ header: 'NAMESPACE', value: ({ namespace }: KindRow) => namespace || null } satisfies Column<KindRow>]
      : []),
    { header: 'NAME', value: ({ name }) => name },
    ...columns
      .filter(({ name }) => name !== 'createdAt')
      .map(
        (column): Column<KindRow> => ({
          header: column.label.toUpperCase(),
          value: (row) => cellOf(row, column, now),
          // An age moves with the clock; what it is the age of is what may change.
          ...(column.unit === 'time' && { lasting: ({ values }) => values[column.name] }),
          ...(column.extra && { isWide: true }),
        }),
      ),
    ...columns
      .filter(({ name }) => name === 'createdAt')
      .map((column): Column<KindRow> => ({ header: 'AGE', value: (row) => cellOf(row, column, now) })),
    ...(scope === 'Fleet' ? [] : [asOf(now)]),
  ]
}

const asOf = (now: number): Column<KindRow> => ({
  header: 'AS-OF',
  value: ({ observedAt }) => (observedAt === null ? null : age(now - observedAt)),
})

type ColumnView = SourceView['columns'][number]

/** What is not known is null; that there is none, or that it is hidden, is said. */
function cellOf({ values, filtered, hasUsage }: KindRow, column: ColumnView, now: number): string | null {
  const of = values[column.name]
  const text = of === undefined ? null : textOf(of as JsonValue, column.unit, now)
  if (text !== null || of === undefined) return text
  const absence = absenceOf(column, filtered, hasUsage)
  return absence === 'unknown' ? null : absenceWord[absence]
}

/** A value as people read it. */
export function textOf(of: JsonValue, unit: ColumnView['unit'], now: number): string | null {
  const value = typeof of === 'object' ? cellText(of) : of
  if (value === null) return null
  const at = unit === 'time' ? momentOf(value) : undefined
  if (at !== undefined) return at > now ? `in ${age(at - now)}` : age(now - at)
  if (typeof value !== 'number') return String(value)
  switch (unit) {
    case 'bytes':
      return bytesText(value)
    case 'cores':
      return least(value * 1000, 1, 'm')
    case 'percent':
      return least(value, 0.1, '%')
    case 'seconds':
      return age(value * 1000)
    default:
      return String(value)
  }
}

/** Rounded to whole steps. What is not nothing is not rounded to nothing: `<1m`. */
function least(value: number, step: number, unit: string): string {
  const digits = step < 1 ? 10 : 1
  if (value > 0 && value * digits < 0.5) return `<${step}${unit}`
  return `${Math.round(value * digits) / digits}${unit}`
}

const SCALES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi']

function bytesText(bytes: number): string {
  let [amount, scale] = [bytes, 0]
  while (Math.abs(amount) >= 1024 && scale < SCALES.length - 1) {
    amount /= 1024
    scale++
  }
  return `${Math.round(amount * 10) / 10}${SCALES[scale]}`
}
