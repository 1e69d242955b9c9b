import type { Client, FleetRowsQuery, FleetRowView, SourceView, TypeView } from '#http'
import { type CustomValue, momentOf } from '#model'
import { age, type Column } from './format.ts'
import { NotFoundError } from './not-found.ts'
import { nounWords, wordMeant } from './words.ts'

/** Rows of a kind that the hub names: pods, and whatever MetricSources declare. */
export interface KindRow extends FleetRowView {
  /** when it was true; null: it never was read */
  readonly observedAt: number | null
}

export interface KindWish {
  /** plural, singular or short name */
  readonly kind: string
  readonly names: readonly string[]
  readonly clusters: readonly string[]
  readonly namespace?: string
  readonly selector?: string
}

export interface KindRows {
  readonly kind: SourceView
  readonly rows: readonly KindRow[]
  readonly notes: readonly string[]
}

/** @throws NotFoundError where no kind is called so, ApiProblem where the hub refuses or cannot be reached */
export async function rowsOfKind(client: Client, wish: KindWish): Promise<KindRows> {
  const type = await typeMeant(client, wish.kind)
  const query: FleetRowsQuery = {
    limit: 1000,
    ...(wish.clusters.length > 0 && { cluster: wish.clusters }),
    ...(wish.namespace !== undefined && { namespace: wish.namespace }),
    ...(wish.selector !== undefined && { labels: wish.selector }),
  }
  const items: FleetRowView[] = []
  const observedAt = new Map<string, number | null>()
  const notes: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = await client.fleetRows(type.type, { ...query, ...(cursor && { cursor }) })
    items.push(...page.items)
    if (cursor === '') {
      for (const { cluster, part } of page.clusters) {
        observedAt.set(cluster, part.freshness?.observedAt ?? null)
        if (part.outcome !== 'complete' && part.outcome !== 'absent')
          notes.push(`${cluster}: ${type.type} are ${part.outcome}: ${part.message}`)
      }
    }
    cursor = page.next
  }
  const named = wish.names.length === 0 ? items : items.filter(({ name }) => wish.names.includes(name))
  const missing = wish.names.filter((name) => !named.some((row) => row.name === name))
  if (missing.length > 0) throw new NotFoundError(`no ${type.type} named ${missing.join(', ')} that you may see`)
  const rows = named.map((row) => ({ ...row, observedAt: observedAt.get(row.cluster) ?? null }))
  if (rows.length === 0) notes.unshift(`no ${type.type} there that you may see`)
  const [kind] = type.sources
  if (!kind) throw new NotFoundError(`nothing declares ${type.type} any more`)
  return { kind, rows, notes }
}

async function typeMeant(client: Client, word: string): Promise<TypeView> {
  const { items } = await client.types()
  const asked = word.toLowerCase()
  const namesOf = ({ type, sources }: TypeView) => [type, ...sources.flatMap(({ names }) => names)]
  // The very name comes first: of another type it may be the short one.
  const found =
    items.find(({ type }) => type === word) ??
    items.find((one) => namesOf(one).some((name) => name.toLowerCase() === asked))
  if (found) return found
  const known = [...nounWords, ...items.flatMap(namesOf)]
  const near = wordMeant(word, known)
  const all = [...new Set([...nounWords.slice(0, nounWords.length / 2), ...items.map(({ type }) => type)])].sort()
  throw new NotFoundError(
    `the hub has nothing called ${JSON.stringify(word)}; ${near === undefined ? `there are ${all.join(', ')}` : `did you mean ${near}?`}`,
  )
}

/** `AS-OF` is how old what we know is, `AGE` how old the thing itself is. */
export function kindColumns({ columns, scope }: SourceView, now: number): readonly Column<KindRow>[] {
  return [
    { header: 'CLUSTER', value: ({ cluster }) => cluster },
    ...(scope === 'Namespaced'
      ? [{ header: 'NAMESPACE', value: ({ namespace }: KindRow) => namespace || null } satisfies Column<KindRow>]
      : []),
    { header: 'NAME', value: ({ name }) => name },
    ...columns
      .filter(({ name }) => name !== 'createdAt')
      .map(
        ({ name, label, unit, extra }): Column<KindRow> => ({
          header: label.toUpperCase(),
          value: ({ values }) => cellOf(values[name] ?? null, unit, now),
          ...(extra && { isWide: true }),
        }),
      ),
    ...(columns.some(({ name }) => name === 'createdAt')
      ? [
          {
            header: 'AGE',
            value: ({ values }: KindRow) => cellOf(values.createdAt ?? null, 'time', now),
          } satisfies Column<KindRow>,
        ]
      : []),
    { header: 'AS-OF', value: ({ observedAt }) => (observedAt === null ? null : age(now - observedAt)) },
  ]
}

function cellOf(value: CustomValue, unit: SourceView['columns'][number]['unit'], now: number): string | null {
  if (value === null) return null
  const at = unit === 'time' ? momentOf(value) : undefined
  if (at !== undefined) return at > now ? `in ${age(at - now)}` : age(now - at)
  if (typeof value !== 'number') return String(value)
  switch (unit) {
    case 'bytes':
      return bytesText(value)
    case 'cores':
      return `${Math.round(value * 1000)}m`
    case 'percent':
      return `${Math.round(value * 10) / 10}%`
    case 'seconds':
      return age(value * 1000)
    default:
      return String(value)
  }
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
