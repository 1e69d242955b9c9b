import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readdirSync } from 'node:fs'
import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from '../../../platform/runtime/testing/free-port.ts'

const required = process.env.CI_REQUIRE_ALL === '1'
/** Where Debian puts the programs of a server; the newest version there is. */
const programs = (() => {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(a) - Number(b)) : []
  return versions.map((version) => join(root, version, 'bin')).findLast((bin) => existsSync(join(bin, 'initdb')))
})()

/** Why there is no server; undefined where there is. With CI_REQUIRE_ALL=1 nothing is skipped. */
export const postgresMissing: string | undefined =
  programs !== undefined || required ? undefined : 'there is no PostgreSQL in /usr/lib/postgresql'
/** Of a suite, with why it is not run. */
export const onPostgres = (name: string): string => (postgresMissing ? `${name} (not run: ${postgresMissing})` : name)

export const PASSWORD = 'fkw3#/@:p w'

export interface TestPostgres extends AsyncDisposable {
  readonly port: number
  /** connection string of a user who owns the database */
  dsn(more?: string, user?: string): string
  /** as the administrator */
  query<R extends object = Record<string, string>>(text: string, values?: unknown[]): Promise<R[]>
  /** kill -9 of the whole server */
  kill(): Promise<void>
  /** again on the same port, with what is on disk */
  start(): Promise<void>
  /** of a table since the beginning, as the server counts them; what its other processes did is waited for */
  counts(table: string): Promise<{ readonly inserted: number; readonly updated: number; readonly deleted: number }>
}

/** A real PostgreSQL on a free port of 127.0.0.1. @param lines of its configuration */
export async function startPostgres(lines: readonly string[] = []): Promise<TestPostgres> {
  if (programs === undefined) throw new Error('there is no PostgreSQL in /usr/lib/postgresql')
  const directory = await mkdtemp(join(tmpdir(), 'postgres-'))
  // It runs as anybody but root.
  const who = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : undefined
  if (who) chownSync(directory, who.uid, who.gid)
  const data = join(directory, 'data')
  const made = spawnSync(
    join(programs, 'initdb'),
    [
      '-D',
      data,
      '-U',
      'postgres',
      '--auth-local=trust',
      '--auth-host=scram-sha-256',
      '--no-sync',
      '-E',
      'UTF8',
      '--locale=C.UTF-8',
    ],
    { ...who, encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const port = await freePort()
  const settings = [
    ...[`port = ${port}`, "listen_addresses = '127.0.0.1'", `unix_socket_directories = '${directory}'`],
    ...['fsync = off', 'max_connections = 300', 'max_wal_size = 2GB'],
  ]
  await appendFile(join(data, 'postgresql.conf'), `${[...settings, ...lines].join('\n')}\n`)
  const administrator = () => new pg.Client({ host: directory, port, user: 'postgres', database: 'postgres' })
  let child: ChildProcess | undefined
  let asking: pg.Client | undefined
  let said = ''
  const start = async () => {
    child = spawn(join(programs, 'postgres'), ['-D', data], { ...who, stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr?.on('data', (text: Buffer) => {
      said = (said + text.toString()).slice(-4000)
    })
    while (!(await answers(administrator))) {
      if (child.exitCode !== null) throw new Error(`postgres ended: ${said}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    asking?.end().catch(() => undefined)
    asking = undefined
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }
  const query = async <R extends object>(text: string, values: unknown[] = []): Promise<R[]> => {
    if (!asking) {
      asking = administrator()
      asking.on('error', () => undefined)
      await asking.connect()
    }
    return (await asking.query<R & pg.QueryResultRow>(text, values)).rows
  }
  await start()
  await query(`create role app login password '${PASSWORD}'`)
  await query('grant create on database postgres to app')
  return {
    port,
    dsn: (more = '?sslmode=disable', user = `app:${encodeURIComponent(PASSWORD)}`) =>
      `postgres://${user}@127.0.0.1:${port}/postgres${more}`,
    query,
    kill,
    start,
    counts: async (table) => {
      const [row] = await query<{ i: string; u: string; d: string }>(
        'select n_tup_ins i, n_tup_upd u, n_tup_del d from pg_stat_user_tables where relid = $1::regclass',
        [table],
      )
      return { inserted: Number(row?.i), updated: Number(row?.u), deleted: Number(row?.d) }
    },
    async [Symbol.asyncDispose]() {
      await kill('SIGQUIT')
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function answers(administrator: () => pg.Client): Promise<boolean> {
  const client = administrator()
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.end()
    return true
  } catch {
    return false
  }
}
