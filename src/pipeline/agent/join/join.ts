import { createHash, randomBytes } from 'node:crypto'
import type { JoinText } from '#wire'
import { Seldom } from '../seldom.ts'
import type { Transport } from '../types.ts'
import { type Answer, ask, pause } from './ask.ts'
import { certificateRequest, keyId, newKey, proofOf } from './certificate-request.ts'
import { type Asking, type IdentityStore, isPair, type MemberIdentity } from './identity.ts'
import { JoinError } from './join-error.ts'
import { memberTransport } from './member-transport.ts'

export interface JoinOptions {
  /** of the identity; nobody but its user may look into it */
  readonly store: IdentityStore
  readonly version: string
  /** says what is waited for, for people */
  readonly say: (sentence: string) => void
  readonly signal: AbortSignal
  /** default: gRPC with TLS */
  readonly transport?: (asking: Asking) => Transport
}

/*
 * States are what is stored; each step ends with one record that is old or new as a whole, so that a kill anywhere goes on from there.
 *
 *   nothing ──key, request kept──► asking ──answer: certificate kept──► member
 *      ▲                             │ ▲                                  │
 *      └────── refused: forgotten ───┘ └───── next key, request kept ◄────┘ a third of its life is left
 *
 * The same request is asked until it is answered: the hub makes one object of it, and its token is spent by one key.
 */

/**
 * The identity of this machine: the one it has, or the one it gets by showing a join token, however long that takes. Without a token
 * it goes on asking with what it showed before.
 * @throws JoinError where the hub says no, or what is stored is of another cluster; IdentityError where that is damaged
 */
export async function join(text: JoinText | undefined, options: JoinOptions): Promise<MemberIdentity> {
  const { store, say } = options
  const member = await store.member()
  if (member && !isAnother(member, text, store.place)) {
    // Killed between the two writes: what was asked is answered, and its token need not lie here.
    const asked = await store.asking()
    if (asked && asked.token !== '' && hashOf(asked.token) === member.joinedBy) await store.forget()
    say(`${member.cluster} is a member already`)
    return member
  }
  const before = await store.asking()
  const isSame = before !== undefined && before.token !== '' && (!text || before.token === text.secret)
  if (!text && !isSame)
    throw new JoinError(
      'no_membership',
      `${store.place} holds no membership: give the token that \`clusterpulse connect NAME\` printed on the hub`,
    )
  const asking = isSame || !text ? (before as Asking) : askingFor(text) // without a token it is the same
  if (asking !== before) await store.ask(asking)
  say(`asking the hub at ${asking.hub.addresses.join(' or ')} to take ${asking.cluster} as a member`)
  say(`its key is ${keyId(asking.key).slice(0, 16)}: whoever accepts it on the hub can compare`)
  const identity = await answered(asking, options)
  say(`${identity.cluster} is a member of the hub`)
  return identity
}

/** Whether it is to join anew: the token is not the one it joined by, as after it was revoked. */
function isAnother(member: MemberIdentity, text: JoinText | undefined, place: string): boolean {
  if (!text || isJoinedBy(member, text)) return false
  if (text.cluster === member.cluster) return true
  throw new JoinError(
    'other_membership',
    `${place} holds the identity of ${member.cluster}; join ${text.cluster} with another folder (--buffer-dir)`,
  )
}

export const isJoinedBy = (member: MemberIdentity, { secret }: JoinText): boolean => hashOf(secret) === member.joinedBy

function askingFor({ cluster, secret, addresses, caFingerprint, caPem = '', serverName }: JoinText): Asking {
  const key = newKey()
  const agent = randomBytes(4).toString('hex')
  return {
    hub: {
      addresses,
      ...(caFingerprint !== undefined && { caFingerprint }),
      ...(serverName !== undefined && { serverName }),
    },
    ...{ roots: caPem, cluster, agent, key, token: secret },
    request: certificateRequest(key, { cluster, agent }).toString('base64'),
  }
}

/** Asks until there is an answer. @param former of a renewal */
export async function answered(
  asking: Asking,
  { store, version, say, signal, transport = (one) => memberTransport(() => one) }: JoinOptions,
  former?: MemberIdentity,
): Promise<MemberIdentity> {
  const csr = Buffer.from(asking.request, 'base64')
  const message = {
    ...{ token: asking.token, clusterName: asking.cluster, agentName: asking.agent, csr, version },
    ...(former && { certificate: derOf(former.certificate), proof: proofOf(former.key, csr) }),
  }
  const way = transport(asking)
  let said = ''
  const once = (sentence: string) => {
    if (sentence !== said) say(sentence)
    said = sentence
  }
  const seldom = new Seldom(() => performance.now())
  let silentSince: number | undefined
  for (let attempt = 0; ; attempt++) {
    const answer = await ask(way, message, {
      onPending: (words) => {
        attempt = 0
        silentSince = undefined
        seldom.forget()
        once(`waiting: ${words}`)
      },
      signal,
    })
    const identity = await taken(store, asking, answer, former)
    if (identity) return identity
    if (answer.kind !== 'later') continue
    silentSince ??= Date.now()
    if (seldom.isNews(answer.message))
      once(`no answer since ${new Date(silentSince).toISOString().slice(0, 19)}Z: ${answer.message}`)
    await pause(attempt, answer.retryAfterMs, signal)
  }
}

async function taken(
  store: IdentityStore,
  asking: Asking,
  answer: Answer,
  former: MemberIdentity | undefined,
): Promise<MemberIdentity | undefined> {
  if (answer.kind === 'later') return undefined
  if (answer.kind === 'refused') {
    await store.forget()
    throw new JoinError(answer.code === 'join_denied' ? 'join_denied' : 'join_refused', answer.message)
  }
  const { hub, cluster, agent, key, roots } = asking
  const { certificate } = answer
  if (!isPair({ key, certificate }))
    throw new JoinError('join_refused', 'the hub sent a certificate that is not for our key; nothing was changed')
  const joinedBy = former ? former.joinedBy : hashOf(asking.token)
  const identity = { hub, roots: answer.roots || roots, cluster, agent, key, certificate, joinedBy }
  await store.join(identity)
  return identity
}

const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

const derOf = (pem: string): Buffer => Buffer.from(pem.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')
