import { afterEach, describe, expect, it } from 'vitest'
import { ClientPool } from './pool.ts'
import { secrets } from './resources.ts'
import { json, ManualClock, type Script, scriptedServer, status, until } from './testing/scripted-server.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  for (const item of open.splice(0).reverse()) await item[Symbol.asyncDispose]()
})

const fine: Script = (_, response) => json(response, 200, { kind: 'List', items: [] })

async function world(script: Script = fine) {
  const clock = new ManualClock()
  const server = await scriptedServer(script)
  open.push(server)
  const pool = new ClientPool({ clock, timeoutMs: 1e9 })
  open.push(pool)
  return { clock, server, pool }
}

const token = (text: string) => ({ credentials: { kind: 'token', token: text } as const })

describe('ClientPool', () => {
  it('gives the same client for the same key and access, without a call', async () => {
    const { pool, server } = await world()
    const [one, two] = await Promise.all([pool.get('a/x', server.access()), pool.get('a/x', server.access())])
    expect(one).toBe(two)
    expect(await pool.get('a/x', server.access())).toBe(one)
    expect(server.requests).toEqual([])
  })

  it('keeps clusters of equal address apart by key', async () => {
    const { pool, server } = await world()
    expect(await pool.get('a/x', server.access())).not.toBe(await pool.get('b/x', server.access()))
    expect(pool.size).toBe(2)
  })

  it('tests a client that rested for a minute, and keeps it when it answers', async () => {
    const { pool, server, clock } = await world()
    const one = await pool.get('a/x', server.access())
    clock.advance(60_001)
    const [two, three] = await Promise.all([pool.get('a/x', server.access()), pool.get('a/x', server.access())])
    expect([two, three]).toEqual([one, one])
    expect(server.requests).toEqual(['GET /api/v1/namespaces?limit=1'])
  })

  it('renews a client that fails its test', async () => {
    let broken = true
    const { pool, server, clock } = await world((request, response) =>
      broken ? status(response, 500, 'InternalError') : fine(request, response),
    )
    const one = await pool.get('a/x', server.access())
    clock.advance(60_001)
    const [two, three] = await Promise.all([pool.get('a/x', server.access()), pool.get('a/x', server.access())])
    expect(two).not.toBe(one)
    expect(three).toBe(two)
    broken = false
    expect(await two.listAll(secrets)).toEqual([])
  })

  it('keeps the breaker over a renewal, so that new credentials do not forgive a dead cluster', async () => {
    const { pool, server } = await world((_, response) => status(response, 503, 'ServiceUnavailable'))
    const one = await pool.get('a/x', server.access(token('one')))
    for (let n = 0; n < 5; n++) await one.ping().catch(() => undefined)
    const two = await pool.get('a/x', server.access(token('two')))
    await expect(two.ping()).rejects.toMatchObject({ reason: 'breaker_open' })
    expect(pool.breakerState('a/x')).toBe('open')
    const other = await world()
    const moved = await pool.get('a/x', other.server.access())
    await moved.ping()
    expect(pool.breakerState('a/x')).toBe('closed')
  })

  it('removes a client that was not used for half an hour, but not one that watches', async () => {
    const { pool, server, clock } = await world((request, response) => {
      if (request.url?.includes('watch=')) response.writeHead(200).flushHeaders()
      else json(response, 200, { kind: 'List', metadata: { resourceVersion: '1' }, items: [] })
    })
    const idle = await pool.get('a/idle', server.access())
    const watching = await pool.get('a/watching', server.access())
    const stop = new AbortController()
    const watch = watching.watch(secrets, { signal: stop.signal })[Symbol.asyncIterator]()
    await watch.next()
    for (let n = 0; n < 7; n++) {
      clock.advance(300_000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(pool.size).toBe(1)
    expect(await pool.get('a/idle', server.access())).not.toBe(idle)
    expect(await pool.get('a/watching', server.access())).toBe(watching)
    stop.abort()
    await watch.return?.(undefined)
  })

  it('forgets a dropped key, and closes everything at its end', async () => {
    const { pool, server } = await world()
    const one = await pool.get('a/x', server.access())
    const two = await pool.get('a/y', server.access())
    pool.drop('a/x')
    expect(pool.size).toBe(1)
    await one.ping()
    await pool[Symbol.asyncDispose]()
    for (const kube of [one, two]) await expect(kube.ping()).rejects.toMatchObject({ reason: 'closed' })
    await expect(pool.get('a/x', server.access())).rejects.toMatchObject({ reason: 'closed' })
  })

  it('renews a client whose credentials changed, and lets whoever works with the old one end in peace', async () => {
    const held: (() => void)[] = []
    const { pool, server } = await world((request, response) => {
      const answer = () => json(response, 200, { kind: 'List', items: [] })
      if (request.url?.includes('limit=1')) held.push(answer)
      else answer()
    })
    const one = await pool.get('a/x', server.access(token('one')))
    const running = one.ping()
    await until(() => held.length === 1)
    const two = await pool.get('a/x', server.access(token('two')))
    expect(two).not.toBe(one)
    held[0]?.()
    await running
    // The next call of the same round, after nothing ran for a moment.
    expect(await one.listAll(secrets)).toEqual([])
    expect(pool.size).toBe(1)
  })

  it('keeps no connection open for a client that another one followed', async () => {
    const { pool, server } = await world()
    const one = await pool.get('a/x', server.access(token('one')))
    await one.listAll(secrets)
    const open = server.open()
    await pool.get('a/x', server.access(token('two')))
    await until(() => server.open() === open - 1)
    await one.listAll(secrets)
    await until(() => server.open() === open - 1)
  })
})
