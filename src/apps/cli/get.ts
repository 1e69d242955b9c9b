import { ApiProblem, type Client, type ClusterView, createClient } from '#http'
import { systemClock } from '#model'
import { apiForm } from './api-form.ts'
import { type Column, print, tableLines } from './format.ts'
import { columnsOf, namesOf, type Row } from './get-columns.ts'
import { rowsOf, type Wish } from './get-rows.ts'
import type { Noun, OutputFormat } from './words.ts'

export interface GetOptions extends Wish {
  readonly server: string
  readonly output: OutputFormat
  /** bearer token, for a hub that asks who calls */
  readonly token?: string
}

/** A client of the hub at this address, as the bearer of the token. */
export const clientOf = (server: string, token: string | undefined): Client =>
  createClient({ baseUrl: server, ...(token && { headers: { authorization: `Bearer ${token}` } }) })

/** What a command prints on standard output, and notes beside it for standard error. */
export interface Printed {
  readonly text: string
  readonly notes: readonly string[]
}

/** @throws ApiProblem where the hub refuses or cannot be reached; NotFoundError */
export async function get({ noun, server, output, token, ...wish }: GetOptions, now = Date.now()): Promise<Printed> {
  const { rows, notes } = await rowsOf(clientOf(server, token), { noun, ...wish }, now)
  if (isForPrograms(output)) return { text: print(output, [], documentsOf(noun, rows)), notes }
  return { text: rows.length === 0 ? '' : print(output, shownColumns(noun, now), rows), notes }
}

const isForPrograms = (output: OutputFormat): output is 'json' | 'yaml' => output === 'json' || output === 'yaml'

/** The columns of the noun fit its rows. */
const shownColumns = (noun: Noun, now: number) => columnsOf(noun, now) as readonly Column<Row>[]

function documentsOf(noun: Noun, rows: readonly Row[]): readonly unknown[] {
  return (noun === 'agents' ? (rows as readonly ClusterView[]).map(agentOf) : rows).map((row) => apiForm(row))
}

const agentOf = ({ name, mode, source, owner, agent }: ClusterView) => ({
  ...{ name, mode, source },
  ...(owner !== undefined && { owner }),
  agent,
})

/** Between two looks, and after a look that failed. */
const LOOK_EVERY_MS = 2_000

export interface Watching {
  readonly out: (text: string) => void
  readonly note: (text: string) => void
  readonly signal: AbortSignal
  readonly everyMs?: number
}

/**
 * Prints what is there, then each row again when it changes, until the signal. A hub that does not answer for a while is
 * waited for.
 * @throws what `get` throws, as long as nothing was ever seen
 */
export async function watch(
  { noun, server, output, token, ...wish }: GetOptions,
  { out, note, signal, everyMs = LOOK_EVERY_MS }: Watching,
): Promise<void> {
  const client = clientOf(server, token)
  const shown = new Map<string, string>()
  const widths: number[] = []
  let isAway = false
  for (let first = true; !signal.aborted; first = false) {
    if (!first) await systemClock.sleep(everyMs, signal)
    if (signal.aborted) return
    const now = Date.now()
    try {
      const { rows, notes } = await rowsOf(client, { noun, ...wish }, now)
      if (first) for (const text of notes) note(text)
      if (isAway) note('the hub answers again')
      isAway = false
      show(changed(noun, rows, shown), { noun, output, now, widths, out, withHeader: first })
      for (const gone of forgotten(noun, rows, shown)) note(`${gone} is gone`)
    } catch (error) {
      if (first || !(error instanceof ApiProblem) || (error.status !== 0 && error.status < 500)) throw error
      if (!isAway) note(`${error.message}; waiting for it`)
      isAway = true
    }
  }
}

/** Of one thing at one place; an event is another thing each time. */
const idOf = (noun: Noun, row: Row): string =>
  JSON.stringify([
    'cluster' in row ? row.cluster : '',
    namesOf(noun, row)[0],
    noun === 'events' && 'at' in row && row.at,
  ])

/** Rows that are new, or say something else than when they were last shown: what only ages is no change. */
function changed(noun: Noun, rows: readonly Row[], shown: Map<string, string>): readonly Row[] {
  const columns = shownColumns(noun, 0).filter(({ header }) => header !== 'AS-OF' && header !== 'HEARTBEAT')
  return rows.filter((row) => {
    const [id, text] = [idOf(noun, row), JSON.stringify(columns.map(({ value }) => value(row)))]
    const isNew = shown.get(id) !== text
    shown.set(id, text)
    return isNew
  })
}

function forgotten(noun: Noun, rows: readonly Row[], shown: Map<string, string>): readonly string[] {
  const there = new Set(rows.map((row) => idOf(noun, row)))
  const gone = [...shown.keys()].filter((id) => !there.has(id))
  for (const id of gone) shown.delete(id)
  if (noun === 'events') return [] // they grow old, which is no news
  return gone.map((id) => (JSON.parse(id) as string[]).filter(Boolean).join('/'))
}

function show(
  rows: readonly Row[],
  {
    noun,
    output,
    now,
    widths,
    out,
    withHeader,
  }: {
    readonly noun: Noun
    readonly output: OutputFormat
    readonly now: number
    readonly widths: number[]
    readonly out: (text: string) => void
    readonly withHeader: boolean
  },
): void {
  if (isForPrograms(output)) {
    for (const document of documentsOf(noun, rows))
      out(output === 'json' ? print('json', [], document, 0) : `---\n${print('yaml', [], document)}`)
    return
  }
  const columns = shownColumns(noun, now).filter(({ isWide }) => output === 'wide' || !isWide)
  for (const line of tableLines(columns, rows, widths).slice(withHeader ? 0 : 1)) out(line)
}
