import type { ServerParts } from '../server-parts.ts'
import { ApiError } from '../status.ts'
import type { Call } from './call.ts'
import { sendText } from './respond.ts'

/** What each answers for, by the names probes and people know; `etcd` is there what the store is here. */
const checks: Readonly<Record<string, (server: ServerParts) => boolean>> = {
  ping: () => true,
  log: () => true,
  etcd: ({ objects }) =>
    objects.get({ group: '', version: 'v1', plural: 'namespaces' }, { name: 'default' }) !== undefined,
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
export function sendHealth(call: Call, root: Root, [asked, ...more]: readonly string[]): Promise<void> {
  const names: readonly string[] = checksOf[root]
  if (more.length > 0 || (asked !== undefined && !names.includes(asked)))
    throw new ApiError('NotFound', 'the server could not find the requested resource', {})
  const excluded = new Set(call.query.getAll('exclude'))
  const lines: string[] = []
  let failed = false
  for (const name of asked === undefined ? names : [asked]) {
    const isWell = excluded.has(name) || checks[name]?.(call.server) === true
    failed ||= !isWell
    lines.push(excluded.has(name) ? `[+]${name} excluded: ok` : isWell ? `[+]${name} ok` : `[-]${name} failed`)
  }
  const unknown = [...excluded].filter((name) => !names.includes(name))
  if (unknown.length > 0)
    lines.push(
      `warn: some health checks cannot be excluded: no matches for ${unknown.map((name) => JSON.stringify(name)).join(',')}`,
    )
  if (!failed && !call.query.has('verbose')) return sendText(call, 200, 'ok')
  return sendText(call, failed ? 500 : 200, `${lines.join('\n')}\n${root} check ${failed ? 'failed' : 'passed'}\n`)
}
