import type { Filter } from './filter.ts'
import { filterMark } from './filter.ts'
import { DEFAULT_LIMIT, MAX_LIMIT, type Paging, readContinueToken } from './page.ts'
import { invalidParameter } from './refusal.ts'

const FILTERS = ['namespace', 'inventory', 'target', 'group', 'version', 'kind', 'name'] as const
const PAGING = ['limit', 'offset', 'continue'] as const

/** Everything that may be asked, by the path. */
const PARAMETERS = {
  rows: [...FILTERS, ...PAGING, 'cluster'],
  /** the path names namespace and inventory */
  named: ['target', 'group', 'version', 'kind', 'name', ...PAGING, 'cluster'],
  /** the path names the roll-up */
  rollUp: ['namespace', 'target', 'group', 'version', 'kind', 'name', ...PAGING, 'cluster'],
  watch: [...FILTERS, 'limit', 'cluster', 'deltas', 'resume'],
  status: ['namespace', 'name', 'limit', 'offset', 'cluster'],
  /** of what is in no namespace */
  clusterStatus: ['name', 'limit', 'offset', 'cluster'],
} as const

export type Form = keyof typeof PARAMETERS

/** What is asked, checked. */
export interface Question {
  readonly filter: Filter
  readonly paging: Paging
  /** the cluster it is about; absent: whichever this is */
  readonly cluster?: string
  /** differences instead of whole pages */
  readonly deltas: boolean
  /** where a stream that ended goes on */
  readonly resume?: string
}

/**
 * Reads the parameters. A name without a value counts as absent.
 * @param named what the path says already
 * @throws Refusal naming the parameter, and what may stand there
 */
export function readQuestion(query: URLSearchParams, form: Form, named: Filter = {}): Question {
  const given = parametersOf(query, PARAMETERS[form])
  const filter: Filter = { ...named, ...pick(given, FILTERS) }
  for (const name of ['namespace', 'inventory', 'clusterInventory', 'target'] as const) checkName(name, filter[name])
  const token = given.get('continue')
  if (token !== undefined && given.has('offset'))
    throw invalidParameter('offset and continue exclude each other: continue says already where the page begins')
  return {
    filter,
    paging: {
      limit: limitOf(given.get('limit'), form === 'status' || form === 'clusterStatus' ? MAX_LIMIT : DEFAULT_LIMIT),
      offset: Math.max(0, integerOf('offset', given.get('offset')) ?? 0),
      ...(token !== undefined && { after: readContinueToken(token, filterMark(filter)) }),
    },
    deltas: flagOf('deltas', given.get('deltas')),
    ...pick(given, ['cluster', 'resume']),
  }
}

function parametersOf(query: URLSearchParams, known: readonly string[]): ReadonlyMap<string, string> {
  const given = new Map<string, string>()
  for (const [name, value] of query) {
    // One that is passed over would make the answer say more, or less, than was asked.
    if (!known.includes(name))
      throw invalidParameter(`there is no parameter ${JSON.stringify(name)} here; there are ${known.join(', ')}`)
    if (given.has(name)) throw invalidParameter(`${name} is given twice`)
    if (value !== '') given.set(name, value)
  }
  return given
}

const pick = <K extends string>(
  given: ReadonlyMap<string, string>,
  names: readonly K[],
): { readonly [N in K]?: string } =>
  Object.fromEntries(names.flatMap((name) => (given.has(name) ? [[name, given.get(name)]] : []))) as {
    [N in K]?: string
  } // of these names

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

function checkName(parameter: string, value: string | undefined): void {
  if (value !== undefined && !NAME.test(value))
    throw invalidParameter(`${parameter} is ${JSON.stringify(value.slice(0, 100))}: no object can have that name`)
}

function integerOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^[+-]?\d{1,15}$/.test(text)) throw invalidParameter(`${name} must be a whole number`)
  return Number(text)
}

function limitOf(text: string | undefined, fallback: number): number {
  const limit = integerOf('limit', text) ?? 0
  return limit <= 0 ? fallback : Math.min(limit, MAX_LIMIT)
}

function flagOf(name: string, text: string | undefined): boolean {
  if (text === undefined || text === 'false') return false
  if (text === 'true') return true
  throw invalidParameter(`${name} must be true or false`)
}
