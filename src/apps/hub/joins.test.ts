import { createHash, X509Certificate } from 'node:crypto'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { newAuthorityPair } from '#authority'
import type { KubeClient, ObjectKey } from '#kube'
import { silentLogger } from '#runtime'
import { joinsOnKubernetes, publishedAuthorities } from './joins.ts'
import type { HubLogger } from './run.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }))
afterEach(() => vi.useRealTimers())

it('takes an authority of members for ended where another list says so, and not where there is none', async () => {
  const published = new Map<string, string>([['extension-apiserver-authentication', 'API\n']])
  const get = async (_: unknown, { name }: ObjectKey) => {
    const text = published.get(name)
    return text === undefined ? undefined : { metadata: { name }, data: { 'ca.crt': text, 'client-ca-file': text } }
  }
  const hub = () => ({ get }) as unknown as KubeClient
  const told: string[] = []
  const warn = (_: object, text: string) => void told.push(text)
  const logger = { ...silentLogger, warn } as unknown as HubLogger // it only warns
  const record = async () => undefined
  const { clientRoots, trusted } = joinsOnKubernetes({ hub, namespace: 'clusterpulse', record, logger })
  const later = async () => {
    vi.setSystemTime(Date.now() + 31_000)
    return (await clientRoots()).split('\n').filter(Boolean)
  }
  expect(await later()).toEqual(['API'])
  // Nobody is told that theirs counts no more before they are all known.
  expect(await trusted()).toBeUndefined()
  published.set('hub-authority', 'ONE\nTWO\n')
  expect(await later()).toEqual(['ONE', 'TWO', 'API'])
  published.delete('hub-authority')
  expect(await later()).toEqual(['ONE', 'TWO', 'API'])
  published.set('hub-authority', '')
  expect(await later()).toEqual(['ONE', 'TWO', 'API'])
  expect(told).toEqual([expect.stringContaining('clusterpulse/hub-authority says no more which authorities')])
  published.set('hub-authority', 'TWO\n')
  expect(await later()).toEqual(['TWO', 'API'])
  expect(await trusted()).toMatch(/^TWO\s+API\s+$/)
})

it('tells everybody who asks at once what is published, and nobody that there is nothing yet', async () => {
  let answer = (): void => undefined
  const isAsked = new Promise<void>((resolve) => {
    answer = resolve
  })
  const get = async (_: unknown, { name }: ObjectKey) => {
    await isAsked
    return { metadata: { name }, data: { 'ca.crt': 'ONE', 'client-ca-file': 'API' } }
  }
  const hub = () => ({ get }) as unknown as KubeClient
  const logger = silentLogger as HubLogger
  const record = async () => undefined
  const { clientRoots, trusted, signingFault } = joinsOnKubernetes({ hub, namespace: 'clusterpulse', record, logger })
  const all = Promise.all([signingFault?.(), clientRoots(), trusted(), clientRoots()])
  answer()
  expect(await all).toEqual([undefined, 'ONE\nAPI', 'ONE\nAPI', 'ONE\nAPI'])
})

it('knows for those who do not hold them which authorities have ended, by another list and by none', async () => {
  const pem = async (name: string) => (await newAuthorityPair(name, Date.now(), 1e9)).cert
  const [one, two] = [await pem('one'), await pem('two')]
  const life = (signer: string) => ({
    ...{ from: 0, until: 1 },
    issuer: createHash('sha256').update(new X509Certificate(signer).raw).digest('hex').slice(0, 16),
  })
  const published = new Map<string, string>([['extension-apiserver-authentication', '']])
  let trouble: string | undefined
  const get = async (_: unknown, { name }: ObjectKey) => {
    const text = published.get(name)
    const annotations = { ...(trouble !== undefined && { 'clusterpulse.io/trouble': trouble }) }
    return text === undefined
      ? undefined
      : { metadata: { name, annotations }, data: { 'ca.crt': text, 'client-ca-file': text } }
  }
  vi.useRealTimers()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const known = publishedAuthorities(
    () => ({ get }) as unknown as KubeClient,
    'clusterpulse',
    silentLogger as HubLogger,
  )
  let changes = 0
  known.authorities.onChange(() => changes++)
  const isLost = () => [one, two].map((signer) => known.authorities.lacksIssuerOf(life(signer)))
  const later = async () => {
    await vi.advanceTimersByTimeAsync(5000)
    for (let i = 0; i < 20; i++) await Promise.resolve()
    return isLost()
  }
  await known.start(new AbortController().signal)
  expect(await later()).toEqual([undefined, undefined])
  published.set('hub-authority', `${one}\n${two}`)
  expect(await later()).toEqual([false, false])
  published.set('hub-authority', two)
  expect(await later()).toEqual([true, false])
  expect(known.authorities.lacksIssuerOf({ from: 0, until: 1 })).toBe(false)
  for (const harmed of ['', two.slice(0, 200)]) {
    published.set('hub-authority', harmed)
    expect(await later()).toEqual([true, false])
  }
  published.delete('hub-authority')
  expect(await later()).toEqual([true, false])
  expect(changes).toBe(2)
  // And whether they can sign.
  published.set('hub-authority', two)
  trouble = 'members that are approved wait for their certificates: the Secret is cut'
  await later()
  expect([known.authorities.signingFault?.(), changes]).toEqual(['the Secret is cut', 3])
  trouble = undefined
  await later()
  expect([known.authorities.signingFault?.(), changes]).toEqual([undefined, 4])
  await known.stop()
})
