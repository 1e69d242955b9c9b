import type { ServerParts } from '../server-parts.ts'
import { ApiError } from '../status.ts'
import type { Call } from './call.ts'
import { sendText } from './respond.ts'

const FAULTS = { lost: 'the stored objects were moved or deleted', full: 'the disk is full' } as const

/** What each answers for, by the names probes and people know; `etcd` is there what the store is here. A text says why it fails. */
const checks: Readonly<
  Record<string, (server: ServerParts, root: Root) => boolean | string | Promise<boolean | string>>
> = {
  ping: () => true,
  log: () => true,
  etcd: async ({ objects, store }, root) => {
    if (!objects.get({ group: '', version: 'v1', plural: 'namespaces' }, { name: 'default' })) return false
    // Another start would bring back neither files nor room: only who sends writes is told.
    const fault = root === 'readyz' ? await store.fault() : undefined
    return fault ? FAULTS[fault] : true
  },
  shutdown: (server) => server.isReady,
}
const checksOf = {
  healthz: ['ping', 'log', 'etcd'],
  livez: ['ping', 'log', 'etcd'],
  readyz: ['ping', 'log', 'etcd', 'shutdown'],
} as const
type Root = keyof typeof checksOf

export const healthPaths: readonly string[] = Object.entries(checksOf).flatMap(([root, names]) => [
  `/${root}`,
  ...names.map((name) => `/${root}/${name}`),
])

/** One check, or all but those excluded; with `verbose`, and where one fails, line by line. */
export async function sendHealth(call: Call, root: Root, [asked, ...more]: readonly string[]): Promise<void> {
  const names: readonly string[] = checksOf[root]
  if (more.length > 0 || (asked !== undefined && !names.includes(asked)))
    throw new ApiError('NotFound', 'the server could not find the requested resource', {})
  const excluded = new Set(call.query.getAll('exclude'))
  const lines: string[] = []
  let failed = false
  for (const name of asked === undefined ? names : [asked]) {
    const answer = excluded.has(name) || (await checks[name]?.(call.server, root))
    failed ||= answer !== true
    const why = typeof answer === 'string' ? `: ${answer}` : ''
    lines.push(
      excluded.has(name) ? `[+]${name} excluded: ok` : answer === true ? `[+]${name} ok` : `[-]${name} failed${why}`,
    )
  }
  const unknown = [...excluded].filter((name) => !names.includes(name))
  if (unknown.length > 0)
    lines.push(
      `warn: some health checks cannot be excluded: no matches for ${unknown.map((name) => JSON.stringify(name)).join(',')}`,
    )
  if (!failed && !call.query.has('verbose')) return sendText(call, 200, 'ok')
  return sendText(call, failed ? 500 : 200, `${lines.join('\n')}\n${root} check ${failed ? 'failed' : 'passed'}\n`)
}
