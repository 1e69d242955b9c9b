import { createHash, createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join as path } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { silentLogger } from '#runtime'
import { decodeRequest, encodeResponse, type JoinRequest, type JoinText, type ResponseInit } from '#wire'
import { TestAuthority, type TestPair } from '../../ingest/stream/test/certificates.ts'
import type { Link, Transport } from '../types.ts'
import type { Asking } from './identity.ts'
import { IdentityFiles } from './identity-files.ts'
import { join } from './join.ts'
import { JoinError } from './join-error.ts'
import { Membership } from './membership.ts'

/*
 * A hub that hands out certificates of keys it made itself: what is asked and when is looked at here, whose key it is with the real hub
 * (control/joining).
 */

let directory = ''
let authority: TestAuthority
beforeAll(async () => {
  directory = await mkdtemp(path(tmpdir(), 'membership-'))
  authority = await TestAuthority.make('test')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

let n = 0
const folder = () => path(directory, String(n++))
const signal = () => new AbortController().signal
const text = (cluster = 'west', secret = 's'.repeat(43)) => ({
  ...{ cluster: cluster as never, secret, addresses: ['hub:9443'], caFingerprint: 'ab'.repeat(32) },
})

type Reply = NonNullable<ResponseInit['payload']>
const goodbye = (code: string, message = 'no'): Reply => ({ case: 'goodbye', value: { code, message } })
const pending = (message: string): Reply => ({ case: 'joinState', value: { phase: 'pending', message } })

/** Answers one question after the other with these; what was asked is kept. */
function aHub(...replies: readonly (readonly Reply[] | Error)[]) {
  const asked: JoinRequest[] = []
  const transport: Transport = {
    async open(): Promise<Link> {
      const answers = replies[asked.length] ?? []
      if (answers instanceof Error) {
        asked.push({} as JoinRequest) // nothing arrived
        throw answers
      }
      return {
        send(bytes) {
          const { payload } = decodeRequest(bytes)
          if (payload.case === 'join') asked.push(payload.value)
          return true
        },
        writable: () => Promise.resolve(),
        messages: (async function* () {
          for (const payload of answers) yield encodeResponse({ payload })
        })(),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }
    },
  }
  return { asked, transport }
}

/** Asks as far as it goes, and what was said. */
async function asks(transport: Transport, at: string, by = text()) {
  const said: string[] = []
  const options = { store: new IdentityFiles(at), version: '1', say: (one: string) => said.push(one), signal: signal() }
  const answer = await join(by, { ...options, transport: () => transport }).catch((error: unknown) => error)
  return { answer, said }
}

async function member(at: string, pair: TestPair) {
  const identity = {
    ...{ hub: { addresses: ['hub:9443'] }, roots: '', cluster: 'west', agent: 'a1', joinedBy: 'ab' },
    ...{ key: pair.key, certificate: pair.cert },
  }
  await new IdentityFiles(at).keep(identity)
  return identity
}

describe('a machine that joins', () => {
  it('asks the same until there is an answer, and says what is waited for once', async () => {
    const { asked, transport } = aHub(
      new Error('unreachable'),
      [pending('somebody must accept it'), pending('somebody must accept it')],
      [goodbye('join_unavailable', 'the hub is stopping')],
      [goodbye('join_denied', 'the request was denied')],
    )
    const { answer, said } = await asks(transport, folder())
    expect(answer).toBeInstanceOf(JoinError)
    expect((answer as JoinError).code).toBe('join_denied')
    const questions = asked.filter(({ csr }) => csr)
    expect(questions.length).toBe(3)
    expect(new Set(questions.map(({ csr }) => Buffer.from(csr).toString('hex'))).size).toBe(1)
    expect(said.filter((one) => one.includes('somebody must accept it'))).toHaveLength(1)
  })

  it('goes on with its key where it was killed, and forgets it where it was refused', async () => {
    const at = folder()
    const files = new IdentityFiles(at)
    const first = new AbortController()
    const { transport } = aHub([pending('wait')])
    const options = { store: new IdentityFiles(at), version: '1', signal: first.signal, transport: () => transport }
    await join(text(), {
      ...options,
      say: (one) => one.startsWith('waiting') && first.abort(new Error('killed')),
    }).catch(() => undefined)
    const before = (await files.asking()) as Asking
    expect(createPrivateKey(before.key).asymmetricKeyDetails?.namedCurve).toBe('prime256v1')
    const again = aHub([goodbye('join_refused', 'the join token has expired')])
    const { answer } = await asks(again.transport, at)
    expect(Buffer.from(again.asked[0]?.csr ?? []).toString('base64')).toBe(before.request)
    expect((answer as Error).message).toBe('the join token has expired')
    expect(await files.asking()).toBeUndefined()
  })

  it('takes no certificate that is not for its key', async () => {
    const { cert } = await authority.sign('west', 'client')
    const at = folder()
    const { transport } = aHub([{ case: 'joinState', value: { phase: 'joined', certificate: cert } }])
    const { answer } = await asks(transport, at)
    expect((answer as Error).message).toMatch(/not for our key/)
    expect(await new IdentityFiles(at).member()).toBeUndefined()
  })

  it('is what it is already without asking, and joins no second cluster in one folder', async () => {
    const at = folder()
    await member(at, await authority.sign('west', 'client'))
    const { asked, transport } = aHub()
    const options = {
      store: new IdentityFiles(at),
      version: '1',
      say: () => undefined,
      signal: signal(),
      transport: () => transport,
    }
    expect((await join(undefined, options)).cluster).toBe('west')
    expect(((await asks(transport, at, text('east'))).answer as JoinError).code).toBe('other_membership')
    expect(asked).toEqual([])
  })

  it('keeps no token of a question that was answered, where it was killed before it forgot', async () => {
    const at = folder()
    const files = new IdentityFiles(at)
    const first = aHub([pending('wait')])
    const stop = new AbortController()
    const options = { store: files, version: '1', transport: () => first.transport, signal: stop.signal }
    const killed = (one: string) => one.startsWith('waiting') && stop.abort(new Error('killed'))
    await join(text(), { ...options, say: killed }).catch(() => undefined)
    const joinedBy = createHash('sha256').update(text().secret).digest('hex')
    await files.keep({ ...(await member(at, await authority.sign('west', 'client'))), joinedBy })
    expect((await files.asking())?.token).toBe(text().secret)
    await asks(aHub().transport, at)
    expect(await files.asking()).toBeUndefined()
    expect((await files.member())?.joinedBy).toBe(joinedBy)
  })

  it('says what is missing where it has neither a token nor a membership', async () => {
    const options = { store: new IdentityFiles(folder()), version: '1', say: () => undefined, signal: signal() }
    await expect(join(undefined, options)).rejects.toThrow(/holds no membership/)
  })
})

describe('a membership', () => {
  it('asks for the next certificate by proof of the former, also where that has ended', async () => {
    const at = folder()
    const pair = await authority.sign('west', 'client', { expired: true })
    const identity = await member(at, pair)
    const { asked, transport } = aHub([pending('wait')])
    const membership = new Membership(identity, {
      ...{ store: new IdentityFiles(at), version: '1', clock: systemClock, random: () => 0.5, logger: silentLogger },
      ...{ transport: () => transport, onRenewed: () => undefined },
    })
    await expect.poll(() => asked.length).toBeGreaterThan(0)
    await membership[Symbol.asyncDispose]()
    const [question] = asked
    expect(question?.token).toBe('')
    expect(new X509Certificate(question?.certificate ?? '').fingerprint256).toBe(
      new X509Certificate(pair.cert).fingerprint256,
    )
    expect((await new IdentityFiles(at).asking())?.key).not.toBe(pair.key)
    expect((await new IdentityFiles(at).member())?.certificate).toBe(pair.cert)
  })

  it('follows the authorities of the hub, and keeps them', async () => {
    const at = folder()
    const identity = await member(at, await authority.sign('west', 'client'))
    const membership = new Membership(identity, {
      ...{ store: new IdentityFiles(at), version: '1', clock: systemClock, random: () => 0.5, logger: silentLogger },
      onRenewed: () => undefined,
    })
    const next = await TestAuthority.make('next')
    for (const roots of [`${authority.pem}${next.pem}`, '', 'nonsense']) membership.trust({ roots, addresses: [] })
    await membership[Symbol.asyncDispose]()
    expect(membership.identity.roots.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
    expect((await new IdentityFiles(at).member())?.roots).toBe(membership.identity.roots)
  })

  it('follows the addresses of the hub, and keeps the one that was good until another one is', async () => {
    const at = folder()
    const identity = await member(at, await authority.sign('west', 'client'))
    const membership = new Membership(identity, {
      ...{ store: new IdentityFiles(at), version: '1', clock: systemClock, random: () => 0.5, logger: silentLogger },
      onRenewed: () => undefined,
    })
    const tells = (addresses: readonly string[], by: string) => {
      membership.trust({ roots: '', addresses }, by)
      return membership.identity.hub.addresses
    }
    expect(tells(['new:9443'], 'hub:9443')).toEqual(['new:9443', 'hub:9443'])
    expect(tells([], 'hub:9443')).toEqual(['new:9443', 'hub:9443'])
    expect(tells(['no address'], 'hub:9443')).toEqual(['new:9443', 'hub:9443'])
    expect(tells(Array(9).fill('many:1'), 'hub:9443')).toEqual(['new:9443', 'hub:9443'])
    expect(tells(['new:9443', 'second:9443'], 'new:9443')).toEqual(['new:9443', 'second:9443'])
    await membership[Symbol.asyncDispose]()
    expect((await new IdentityFiles(at).member())?.hub.addresses).toEqual(['new:9443', 'second:9443'])
  })

  /** Of a member whose certificate is good for days: it has no reason to ask but that it is not served. */
  async function notServed(...answers: readonly (readonly Reply[])[]) {
    return notServedWith(undefined, ...answers)
  }
  async function notServedWith(newToken: JoinText | undefined, ...answers: readonly (readonly Reply[])[]) {
    const at = folder()
    const identity = await member(at, await authority.sign('west', 'client'))
    const said: string[] = []
    const logger = {
      ...silentLogger,
      warn: (facts: object, text: string) => said.push(`${text}: ${(facts as { reason: string }).reason}`),
      error: (_: object, text: string) => said.push(text),
    }
    let now = systemClock.now()
    const clock = { now: () => now, sleep: systemClock.sleep }
    const pass = (ms: number) => {
      now += ms
    }
    const { asked, transport } = aHub(...answers)
    const membership = new Membership(identity, {
      ...{ store: new IdentityFiles(at), version: '1', clock, random: () => 0.5, logger },
      ...{ transport: () => transport, onRenewed: () => undefined },
      ...(newToken && { newToken }),
    })
    return { membership, asked, said, pass }
  }

  const denied = 'the hub does not accept the cluster any more; `clusterpulse accept west` on the hub lets it in again'
  const revoked = 'the certificate of this agent is revoked; the cluster must join anew'

  it('asks why once the hub ended three streams before it served them, says it once, and keeps it at hand until it is served', async () => {
    const no = goodbye('join_refused', denied)
    const { membership, asked, said } = await notServed([no], [no])
    await using _membership = membership
    for (let stream = 0; stream < 2; stream++) membership.refused()
    expect(asked).toEqual([])
    expect(membership.why).toBeUndefined()
    for (let stream = 0; stream < 20; stream++) membership.refused()
    await expect.poll(() => membership.why).toBe(denied)
    expect(said).toEqual([expect.stringMatching(/^the hub does not serve this member; .*: the hub does not accept/)])
    for (let stream = 0; stream < 20; stream++) membership.refused()
    expect(asked).toHaveLength(1)
    membership.welcomed()
    expect(membership.why).toBeUndefined()
    membership.refused('revoked')
    await expect.poll(() => said.length).toBe(2)
    for (let stream = 0; stream < 20; stream++) membership.refused('revoked')
    expect(asked).toHaveLength(2)
  })

  it('asks again after half a minute and then more and more seldom, and says what changed', async () => {
    const { membership, asked, said, pass } = await notServed(
      ...[denied, denied, revoked].map((why) => [goodbye('join_refused', why)]),
      ...Array.from({ length: 10 }, () => [goodbye('join_refused', revoked)]),
    )
    await using _membership = membership
    membership.refused('revoked')
    await expect.poll(() => membership.why).toBe(denied)
    for (const [questions, ms] of [
      [1, 29_000],
      [2, 2_000],
      [2, 59_000],
      [3, 2_000],
    ] as const) {
      pass(ms)
      membership.refused()
      await expect.poll(() => asked.length).toBe(questions)
    }
    await expect.poll(() => membership.why).toBe(revoked)
    expect(said).toHaveLength(2)
    expect(said[1]).toMatch(/is revoked/)
    // At least every ten minutes, however long it is turned down.
    for (let questions = 4; questions < 10; questions++) {
      pass(600_000)
      membership.refused()
      await expect.poll(() => asked.length).toBe(questions)
    }
    expect(said).toHaveLength(2)
  })

  it('joins anew with the token it was given since, once the hub says that it must, and says what is waited for', async () => {
    const spare = text('west', 'n'.repeat(43))
    const no = [goodbye('join_refused', revoked)]
    const { membership, asked } = await notServedWith(
      spare,
      no,
      ...Array.from({ length: 9 }, () => [pending('somebody must accept it')]),
    )
    await using _membership = membership
    membership.refused('revoked')
    await expect.poll(() => asked.slice(0, 3).map(({ token }) => token)).toEqual(['', spare.secret, spare.secret])
    expect(membership.why).toMatch(/^waiting: somebody must accept it|^no answer since/)
    expect(asked[1]?.csr).not.toEqual(asked[0]?.csr)
  })

  it.each([
    ['was denied', denied, 'n'.repeat(43), denied],
    [
      'is revoked, and whose token is no good',
      revoked,
      'n'.repeat(43),
      `${revoked}; the token it was given since does not let it in: the join token has ended`,
    ],
  ])('of a member that %s it shows no token twice, and keeps who it is', async (_, why, secret, told) => {
    const ended = [goodbye('join_refused', 'the join token has ended')]
    const no = [goodbye('join_refused', why)]
    const { membership, asked, pass } = await notServedWith(
      text('west', secret),
      no,
      why === denied ? no : ended,
      no,
      no,
    )
    await using _membership = membership
    const { certificate } = membership.identity
    membership.refused('revoked')
    await expect.poll(() => membership.why).toBe(told)
    const first = asked.length
    pass(600_000)
    membership.refused('revoked')
    await expect.poll(() => asked.length).toBe(first + 1)
    expect(asked.at(-1)?.token).toBe('')
    expect(membership.identity.certificate).toBe(certificate)
  })
})
