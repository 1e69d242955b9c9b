import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ChannelCredentials } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COLLECTOR_METHOD } from '#wire'
import { aBatch, aNode, complete, west } from '../../state/test/fleet-words.ts'
import { defaultLimits } from '../line/limits.ts'
import { TestAuthority } from './test/certificates.ts'
import { aHub, type TestHub } from './test/hub.ts'
import { OwnAgent } from './test/own-agent.ts'
import type { ServerTls } from './types.ts'

const MiB = 2 ** 20

let directory: string
let authority: TestAuthority
let tls: ServerTls

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'strangers-'))
  authority = await TestAuthority.make('agents')
  const { cert, key } = await authority.sign('hub', 'server')
  tls = { certFile: join(directory, 'tls.crt'), keyFile: join(directory, 'tls.key') }
  await writeFile(tls.keyFile, key)
  await writeFile(tls.certFile, cert)
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Somebody who shows nothing: one connection with one stream, and bytes instead of messages. */
class Stranger implements Disposable {
  readonly #session: ClientHttp2Session
  readonly #stream: ClientHttp2Stream
  readonly #gone = new AbortController()
  status = ''

  constructor({ port }: TestHub['server']['address']) {
    this.#session = connect(`https://127.0.0.1:${port}`, { ca: authority.pem })
    this.#session.on('error', () => undefined) // told by what it was answered
    this.#stream = this.#session.request({
      ':method': 'POST',
      ':path': COLLECTOR_METHOD,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    this.#stream.on('error', () => undefined).once('close', () => this.#gone.abort())
    const read = (headers: { readonly [name: string]: unknown }) => {
      if (headers['grpc-status'] !== undefined)
        this.status = `${headers['grpc-status']} ${decodeURI(String(headers['grpc-message']))}`
    }
    this.#stream.on('response', read).on('trailers', read).resume()
  }

  /** The beginning of a message that announces so much, and so much of it, as far as it is taken. */
  async send(announced: number, bytes: number): Promise<void> {
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(announced, 1)
    this.#stream.write(prefix)
    const piece = Buffer.alloc(64 * 1024)
    for (let left = bytes; left > 0 && !this.#stream.destroyed; left -= piece.length)
      if (!this.#stream.write(piece.subarray(0, left))) await once(this.#stream, 'drain', { signal: this.#gone.signal })
  }

  get isClosed(): boolean {
    return this.#gone.signal.aborted
  }

  [Symbol.dispose](): void {
    this.#session.destroy()
  }
}

function strangers(hub: TestHub, count: number) {
  const all = Array.from({ length: count }, () => new Stranger(hub.server.address))
  return Object.assign(all, {
    [Symbol.dispose]: () => {
      for (const one of all) one[Symbol.dispose]()
    },
  })
}

/** What buffers of this process hold, the hub's among them, at the most from now on; MiB */
function heldMiB() {
  const now = () => process.memoryUsage().arrayBuffers / MiB
  const before = now()
  let most = 0
  const look = () => {
    most = Math.max(most, now() - before)
  }
  const looking = setInterval(look, 10)
  return {
    get most() {
      look()
      return most
    },
    [Symbol.dispose]: () => clearInterval(looking),
  }
}

const metric = async (hub: TestHub, line: string) => {
  const found = (await hub.metrics.registry.metrics()).split('\n').find((one) => one.startsWith(`${line} `))
  return found === undefined ? 0 : Number(found.split(' ').at(-1))
}

async function aMember(hub: TestHub) {
  const credentials = ChannelCredentials.createSsl(Buffer.from(authority.pem))
  const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token', credentials })
  let sequence = 0
  return Object.assign(agent, {
    async isServed() {
      sequence++
      agent.push(aBatch(west, sequence, [complete('node', aNode('n1'))], { source: 'push', collectedAt: Date.now() }))
      await agent.ackedTo(sequence)
    },
  })
}

describe('who has no credential', () => {
  it('makes the hub hold next to nothing by messages of 16 MiB on many connections, and keeps no member waiting', async () => {
    await using hub = await aHub({ tls })
    await using member = await aMember(hub)
    using all = strangers(hub, 60)
    using held = heldMiB()
    const sending = Promise.allSettled(all.map((one) => one.send(16 * MiB - 1, 15.5 * MiB)))
    await expect.poll(() => all.filter(({ status }) => status !== '').length).toBe(60)
    await member.isServed()
    await sending
    // It is not read to its end: the stream is gone from the hub as well.
    await expect.poll(() => all.every(({ isClosed }) => isClosed)).toBe(true)
    await member.isServed()
    expect(new Set(all.map(({ status }) => status))).toEqual(
      new Set([`8 too_large: before the registration a message has at most 65536 bytes, and this one ${16 * MiB - 1}`]),
    )
    expect(held.most).toBeLessThan(64)
    expect(await metric(hub, 'clusterpulse_agent_refused_total{reason="too_large"}')).toBe(60)
    expect(await metric(hub, 'clusterpulse_agent_newcomer_bytes')).toBe(0)
  })

  it('holds as many streams as may be unnamed, each with the most it may send, and that is 16 MiB; then it is let go', async () => {
    await using hub = await aHub({ tls, limits: { registerMs: 3_000, sweepMs: 100 } })
    await using member = await aMember(hub)
    const { maxUnnamed, maxNewcomerMessageBytes: most } = defaultLimits
    using all = strangers(hub, maxUnnamed + 20)
    void Promise.allSettled(all.map((one) => one.send(most, most - 1)))
    let highest = 0
    await expect
      .poll(async () => {
        highest = Math.max(highest, await metric(hub, 'clusterpulse_agent_newcomer_bytes'))
        return all.filter(({ status }) => status !== '').length
      })
      .toBe(maxUnnamed + 20)
    await member.isServed()
    expect(highest).toBeGreaterThan(most)
    expect(highest).toBeLessThanOrEqual(maxUnnamed * (most + 5))
    expect(new Set(all.map(({ status }) => status.slice(0, 20)))).toEqual(new Set(['16 unauthenticated: ']))
    await expect.poll(() => metric(hub, 'clusterpulse_agent_newcomer_bytes')).toBe(0)
  })

  it('is bounded together with all others, by bytes', async () => {
    await using hub = await aHub({ tls, limits: { maxNewcomerBytes: 100_000 } })
    using all = strangers(hub, 4)
    void Promise.allSettled(all.map((one) => one.send(60_000, 50_000)))
    await expect
      .poll(() => all.map(({ status }) => status).filter((status) => status !== ''))
      .toContain('8 busy: streams that have not registered hold at most 100000 bytes together; try again later')
    expect(await metric(hub, 'clusterpulse_agent_newcomer_bytes')).toBeLessThanOrEqual(100_000)
    expect(await metric(hub, 'clusterpulse_agent_refused_total{reason="newcomer_bytes"}')).toBeGreaterThan(0)
  })
})
