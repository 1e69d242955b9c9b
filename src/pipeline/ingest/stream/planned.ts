import type { Batch, Plan, RowsPart, SourceId } from '#model'
import { isSourceId } from '../check-rows.ts'
import type { ChannelContext } from './channel.ts'

/** What a plan asks of one source. */
interface Wanted {
  readonly hash: string
  /** undefined: those that its descriptor names; others are never shown */
  readonly aggregations: ReadonlySet<string> | undefined
}

const known = new WeakMap<Plan, ReadonlyMap<SourceId, Wanted>>()

/** The sources a plan names; what of its definitions is none is passed over. */
export function sourcesOf(plan: Plan): ReadonlyMap<SourceId, Wanted> {
  let sources = known.get(plan)
  if (!sources) {
    const compiledIn = (plan.resources ?? []).map((name): [SourceId, Wanted] => [
      name,
      { hash: '', aggregations: undefined },
    ])
    sources = new Map([...plan.sources.flatMap(wantedOf), ...compiledIn])
    known.set(plan, sources)
  }
  return sources
}

function wantedOf(definition: unknown): [SourceId, Wanted][] {
  if (typeof definition !== 'object' || definition === null) return []
  // The documented definition of a MetricSource, as far as it is needed here.
  const { namespace, name, hash, aggregations } = definition as Readonly<Record<string, unknown>>
  const id = `${namespace}/${name}`
  if (!isSourceId(id)) return []
  const names = Array.isArray(aggregations) ? aggregations.map((one: { readonly name?: unknown }) => one?.name) : []
  const texts = names.filter((one): one is string => typeof one === 'string')
  return [[id, { hash: typeof hash === 'string' ? hash : '', aggregations: new Set(texts) }]]
}

/** A batch of a stream as far as its plan asks for it; what is left out is counted. */
export function planned(given: Batch, { world, stream, effects }: ChannelContext): Batch {
  const { batch, dropped } = plannedOnly(given, world.planOf(stream.registered.peer.cluster))
  for (let i = 0; i < dropped; i++) effects.count('unplanned')
  return batch
}

/**
 * A peer cannot invent sources, nor numbers that were not asked for: what its plan does not name is left out.
 * @param plan undefined: nobody has said yet what is wanted
 * @returns with how many sources were left out
 */
export function plannedOnly(batch: Batch, plan: Plan | undefined): { readonly batch: Batch; readonly dropped: number } {
  if (!batch.tables) return { batch, dropped: 0 }
  const sources = plan && sourcesOf(plan)
  const tables = batch.tables.flatMap((part) => {
    if (!isSourceId(part.source)) return []
    if (!sources) return [part]
    const wanted = sources.get(part.source)
    return wanted ? [withWanted(part, wanted)] : []
  })
  const { tables: all, ...rest } = batch
  return { batch: tables.length > 0 ? { ...rest, tables } : rest, dropped: all.length - tables.length }
}

function withWanted(part: RowsPart, { aggregations: wanted }: Wanted): RowsPart {
  if (part.outcome !== 'complete' && part.outcome !== 'changed') return part
  if (!wanted) return part
  const entries = Object.entries(part.aggregations)
  if (entries.every(([name]) => wanted.has(name))) return part
  return { ...part, aggregations: Object.fromEntries(entries.filter(([name]) => wanted.has(name))) }
}
