import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ClientAuthorities } from './client-certificates.ts'
import { type ApiListener, listenApi } from './listen.ts'
import { ApiServer } from './server.ts'
import { type ClientPair, TestAuthority } from './test/certificates.ts'

/** CAs that come and go by hand. */
class Changing implements ClientAuthorities {
  authorities: readonly TestAuthority[] = []
  refused: readonly string[] = []
  #listeners = new Set<() => void>()

  get pem(): string {
    return this.authorities.map(({ pem }) => pem).join('')
  }

  accepts({ subject }: { readonly subject: string }): boolean {
    return !this.refused.some((each) => subject.includes(each))
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  get listeners(): number {
    return this.#listeners.size
  }

  change(next: { authorities?: readonly TestAuthority[]; refused?: readonly string[] }): void {
    Object.assign(this, next)
    for (const listener of this.#listeners) listener()
  }
}

describe('the CAs whose clients a port knows', () => {
  let server: ApiServer
  let listener: ApiListener
  let fixed: TestAuthority
  let [first, second]: TestAuthority[] = []
  const changing = new Changing()
  beforeEach(async () => {
    fixed = await TestAuthority.create('fixed')
    ;[first, second] = [await TestAuthority.create('first'), await TestAuthority.create('second')]
    changing.change({ authorities: [], refused: [] })
    server = await ApiServer.open({ storage: { kind: 'memory' } })
    listener = await listenApi({
      mounts: new Map([['', server]]),
      tokens: [{ token: 'word', user: 'admin', groups: ['system:masters'] }],
      clientCa: fixed.pem,
      clientAuthorities: changing,
    })
  })
  afterEach(async () => {
    await listener[Symbol.asyncDispose]()
    await server[Symbol.asyncDispose]()
    expect(changing.listeners).toBe(0)
  })

  const signed = (authority: TestAuthority | undefined, name: string): Promise<ClientPair> => {
    if (!authority) throw new Error('there is no such CA')
    return authority.sign({ subject: `CN=${name}, O=system:masters` })
  }

  /** The status of an answer on this connection, or on a new one. */
  const code = (pair: ClientPair, agent?: Agent): Promise<number> =>
    new Promise((resolve, reject) => {
      const call = httpsRequest(
        `${listener.url}/api/v1/namespaces`,
        { ca: listener.caPem, agent: agent ?? false, ...pair },
        (response) => {
          response.resume().on('end', () => resolve(response.statusCode ?? 0))
        },
      )
      call.on('error', reject)
      call.end()
    })

  it('count from the moment they are listed', async () => {
    const ann = await signed(first, 'ann')
    expect(await code(ann)).toBe(401)
    changing.change({ authorities: [first as TestAuthority] })
    expect(await code(ann)).toBe(200)
    changing.change({ authorities: [first as TestAuthority, second as TestAuthority] })
    expect(await code(ann)).toBe(200)
    expect(await code(await signed(second, 'joe'))).toBe(200)
  })

  it('end on open connections as well, while the fixed ones stay', async () => {
    changing.change({ authorities: [first as TestAuthority, second as TestAuthority] })
    const [ann, joe, eve] = [await signed(first, 'ann'), await signed(second, 'joe'), await signed(fixed, 'eve')]
    const agents = [ann, joe, eve].map(
      (pair) => new Agent({ keepAlive: true, maxSockets: 1, ca: listener.caPem, ...pair }),
    )
    const codes = () => Promise.all([ann, joe, eve].map((pair, at) => code(pair, agents[at])))
    expect(await codes()).toEqual([200, 200, 200])
    changing.change({ authorities: [second as TestAuthority] })
    expect(await codes()).toEqual([401, 200, 200])
    expect(await code(ann)).toBe(401)
    changing.change({ refused: ['joe', 'eve'] })
    expect(await codes()).toEqual([401, 401, 200]) // what is fixed is not theirs to refuse
    expect(await code(joe)).toBe(401)
    for (const agent of agents) agent.destroy()
  })

  it('end what is under way for one that counts no more, and leave what is not theirs', async () => {
    changing.change({ authorities: [first as TestAuthority] })
    const watch = async (authority: TestAuthority | undefined, name: string) => {
      const pair = await signed(authority, name)
      const url = `${listener.url}/api/v1/namespaces?watch=true`
      const call = httpsRequest(url, { ca: listener.caPem, agent: false, ...pair })
      call.end()
      const [answer] = (await once(call, 'response')) as [IncomingMessage]
      expect(answer.statusCode).toBe(200)
      const ended = new Promise<string>((resolve) => {
        answer.on('error', () => resolve('ended')).on('close', () => resolve('ended'))
        answer.resume()
      })
      return { call, ended }
    }
    const [joe, eve] = [await watch(first, 'joe'), await watch(fixed, 'eve')]
    changing.change({ refused: ['joe', 'eve'] })
    expect(await joe.ended).toBe('ended')
    const goesOn = new Promise<string>((resolve) => setTimeout(() => resolve('goes on'), 200))
    expect(await Promise.race([eve.ended, goesOn])).toBe('goes on')
    eve.call.destroy()
    await eve.ended
  })

  it('are not taken for one another by their names', async () => {
    const twin = await TestAuthority.create('first')
    changing.change({ authorities: [first as TestAuthority] })
    expect(await code(await signed(twin, 'ann'))).toBe(401)
    changing.change({ authorities: [twin] })
    expect(await code(await signed(first, 'ann'))).toBe(401)
    expect(await code(await signed(twin, 'ann'))).toBe(200)
  })
})
