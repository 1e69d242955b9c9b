import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { memberGroup, memberUser } from '#authority'
import { MemoryCatalog } from '#catalog'
import { type KubeClient, secrets } from '#kube'
import { compileMetricSource } from '#metricsource'
import { parseClusterName, systemClock } from '#model'
import { AgentCredentials, type AgentCredentialsOptions, UnknownConnectionError } from './agent-credentials.ts'
import { agentPlans } from './agent-plans.ts'
import { connectionResource } from './connection-resource.ts'
import { apis, declare, HUB_NAMESPACE as namespace, type TestApi } from './testing/hubs.ts'

const address = '10.0.0.1:4711'
const FINGERPRINT = 'ab'.repeat(32)
const certificate = (cluster: string, over: object = {}) => ({
  commonName: `clusterpulse:cluster:${cluster}`,
  organizations: [],
  subjectAltName: '',
  fingerprint: FINGERPRINT,
  notAfter: Date.now() + 3_600_000,
  ...over,
})

for (const { title, skip, open } of apis) {
  describe.skipIf(skip)(`AgentCredentials on ${title}`, () => {
    let api: TestApi
    let kube: KubeClient
    const opened: AgentCredentials[] = []
    let n = 0
    const aName = () => parseClusterName(`c${n++}`)
    beforeAll(async () => {
      api = await open()
      kube = api.kube
    })
    afterEach(async () => {
      for (const credentials of opened.splice(0)) await credentials[Symbol.asyncDispose]()
    })
    afterAll(async () => {
      await api?.[Symbol.asyncDispose]()
    })

    async function aVerifier(over: Partial<AgentCredentialsOptions> = {}): Promise<AgentCredentials> {
      const credentials = new AgentCredentials({ hub: kube, namespace, ...over })
      opened.push(credentials)
      await credentials.start()
      return credentials
    }
    const secretKey = (name: string) => ({ name, namespace })
    const until = (check: () => void) => vi.waitFor(check, { timeout: 80_000, interval: 5 })
    const refused = (reason: string) => ({ refused: reason })

    it('gives out a token once, keeps only its hash, and knows who shows it at once', async () => {
      const credentials = await aVerifier()
      const cluster = aName()
      await declare(kube, cluster)
      const { token, id } = await credentials.issue(cluster)
      expect(credentials.verify({ token, address })).toEqual({
        peer: { cluster, method: 'token', credential: `token:${id}` },
      })
      const secret = await kube.get(secrets, secretKey(`${cluster}-agent`))
      const text = Object.values(secret?.data as Record<string, string>).map((value) =>
        Buffer.from(value, 'base64').toString(),
      )
      expect(text.join()).not.toContain(token)
      expect(text.join()).not.toContain(token.replace(/^cp_[^_]+_/, ''))
      expect(secret?.metadata.ownerReferences?.[0]).toMatchObject({ kind: 'ClusterConnection', name: cluster })
    })

    it('says to whom it let in why that is over, with what helps', async () => {
      const denied = 'the hub does not accept the cluster any more'
      const members = { counts: () => false, fault: () => denied, onAccessChange: () => () => undefined }
      const credentials = await aVerifier({ members })
      const cluster = aName()
      await declare(kube, cluster)
      const { token, id } = await credentials.issue(cluster)
      const peer = { cluster, method: 'token', credential: `token:${id}` } as const
      expect(credentials.verify({ token, address })).toEqual({ peer })
      await credentials.revoke(cluster)
      await until(() => expect(credentials.stillValid(peer)).toBe(false))
      expect(credentials.whyEnded(peer)).toMatch(
        /no longer valid: it was revoked.*`clusterpulse connect c\d+ --bearer-token`/,
      )
      const member = { cluster, method: 'certificate', credential: `member:${FINGERPRINT}:${Date.now()}` } as const
      expect(credentials.whyEnded(member)).toBe(denied)
      const key = { name: cluster, namespace }
      await kube.patch(
        connectionResource,
        key,
        { spec: { collectionMode: 'pull', endpoint: 'https://10.0.0.1:6443', credentialsRef: { name: 'access' } } },
        { kind: 'merge' },
      )
      await until(() => expect(credentials.whyEnded(peer)).toMatch(/pull mode; stop this agent/))
      await kube.delete(connectionResource, key)
      await until(() => expect(credentials.whyEnded(peer)).toMatch(/there is no ClusterConnection c\d+/))
    })

    it('refuses nobody, strangers and wrong tokens alike', async () => {
      const credentials = await aVerifier()
      const cluster = aName()
      await declare(kube, cluster)
      const { token } = await credentials.issue(cluster)
      const wrong = `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
      const elsewhere = token.replace(`cp_${cluster}_`, 'cp_nobody_')
      expect(credentials.verify({ address })).toEqual(refused('no_credential'))
      expect(credentials.verify({ address, token: '' })).toEqual(refused('no_credential'))
      for (const shown of [wrong, elsewhere, 'eyJ.e30.c2ln', `${token} `]) {
        expect(credentials.verify({ token: shown, address })).toEqual(refused('unknown'))
      }
    })

    it('takes the token of one cluster for no other', async () => {
      const credentials = await aVerifier()
      const [a, b] = [aName(), aName()]
      await declare(kube, a)
      await declare(kube, b)
      const { token } = await credentials.issue(a)
      await credentials.issue(b)
      expect(credentials.verify({ token: token.replace(`cp_${a}_`, `cp_${b}_`), address })).toEqual(refused('unknown'))
    })

    it('keeps old and new good during a rotation, and never a third', async () => {
      const credentials = await aVerifier()
      const cluster = aName()
      await declare(kube, cluster)
      const first = await credentials.issue(cluster)
      const second = await credentials.rotate(cluster)
      const good = () => [first, second].map(({ token }) => 'peer' in credentials.verify({ token, address }))
      expect(good()).toEqual([true, true])
      expect(credentials.check(cluster, first.token)?.expiresAt).toBeLessThanOrEqual(Date.now() + 24 * 3_600_000)
      const third = await credentials.issue(cluster)
      expect(good()).toEqual([false, true])
      const fourth = await credentials.issue(cluster, { inUse: second.id })
      expect(good()).toEqual([false, true])
      expect('peer' in credentials.verify({ token: third.token, address })).toBe(false)
      expect('peer' in credentials.verify({ token: fourth.token, address })).toBe(true)
    })

    it('loses none of two tokens that are issued at once', async () => {
      const [one, two] = [await aVerifier(), await aVerifier()]
      const cluster = aName()
      await declare(kube, cluster)
      const issued = await Promise.all([one.issue(cluster), two.issue(cluster)])
      for (const { token } of issued) await until(() => expect(one.verify({ token, address })).toHaveProperty('peer'))
    })

    it('ends a token when its time is over, and says so to whoever listens', async () => {
      let now = Date.now()
      const waiting: (() => void)[] = []
      const clock = {
        now: () => now,
        sleep: (ms: number, signal?: AbortSignal) =>
          ms === 2000
            ? new Promise<void>((resolve) => {
                waiting.push(resolve)
                signal?.addEventListener('abort', () => resolve(), { once: true })
              })
            : systemClock.sleep(Math.min(ms, 50), signal),
      }
      const credentials = await aVerifier({ clock })
      const cluster = aName()
      await declare(kube, cluster)
      const { token } = await credentials.issue(cluster, { ttlMs: 60_000 })
      const verdict = credentials.verify({ token, address })
      if (!('peer' in verdict)) throw new Error('refused')
      await new Promise((resolve) => setImmediate(resolve)) // the change of the Secret itself is told first
      let told = 0
      credentials.onChange(() => told++)
      now += 60_000
      expect(credentials.stillValid(verdict.peer)).toBe(false)
      expect(credentials.verify({ token, address })).toEqual(refused('expired'))
      waiting.splice(0).forEach((wake) => void wake())
      await until(() => expect(told).toBe(1))
    })

    it.each([
      [
        'a revocation',
        (credentials: AgentCredentials, cluster: string) => credentials.revoke(parseClusterName(cluster)),
      ],
      ['the end of its Secret', (_: unknown, cluster: string) => kube.delete(secrets, secretKey(`${cluster}-agent`))],
      [
        'the end of its connection',
        (_: unknown, cluster: string) => kube.delete(connectionResource, secretKey(cluster)),
      ],
      [
        'the mode pull',
        async (_: unknown, cluster: string) => {
          const spec = { collectionMode: 'pull', endpoint: 'https://api:6443', credentialsRef: { name: 'x' } }
          await kube.patch(connectionResource, secretKey(cluster), { spec }, { kind: 'merge' })
        },
      ],
    ] as const)('hears of %s within moments, and the stream is not valid any more', async (_, end) => {
      const credentials = await aVerifier()
      const cluster = aName()
      await declare(kube, cluster)
      const { token } = await credentials.issue(cluster)
      const verdict = credentials.verify({ token, address })
      if (!('peer' in verdict)) throw new Error('refused')
      expect(credentials.stillValid(verdict.peer)).toBe(true)
      const told = new Promise<number>((resolve) => {
        const since = performance.now()
        credentials.onChange(() => credentials.stillValid(verdict.peer) || resolve(performance.now() - since))
      })
      await end(credentials, cluster)
      expect(await told).toBeLessThan(2000)
      expect(credentials.verify({ token, address })).toHaveProperty('refused')
    })

    it('says whose credentials changed, and nothing of a connection whose speakers stay the same', async () => {
      const credentials = await aVerifier()
      await new Promise((resolve) => setImmediate(resolve)) // what was there is told first
      const [cluster, other] = [aName(), aName()]
      const told: (readonly string[] | undefined)[] = []
      credentials.onChange((clusters) => told.push(clusters && [...clusters]))
      await declare(kube, cluster)
      await until(() => expect(told).toEqual([[cluster]]))
      await kube.patch(connectionResource, secretKey(cluster), { spec: { displayName: 'x' } }, { kind: 'merge' })
      await declare(kube, other)
      await until(() => expect(told).toEqual([[cluster], [other]]))
      // Its Secret may be that of others as well.
      await kube.patch(
        connectionResource,
        secretKey(other),
        { spec: { credentialsRef: { name: 'shared' } } },
        { kind: 'merge' },
      )
      await until(() => expect(told).toEqual([[cluster], [other], undefined]))
    })

    it('revokes one of two tokens and leaves the other', async () => {
      const credentials = await aVerifier()
      const cluster = aName()
      await declare(kube, cluster)
      const [old, current] = [await credentials.issue(cluster), await credentials.issue(cluster)]
      await credentials.revoke(cluster, `token:${old.id}`)
      await until(() => expect(credentials.verify({ token: old.token, address })).toEqual(refused('unknown')))
      expect(credentials.verify({ token: current.token, address })).toHaveProperty('peer')
    })

    it('takes no token of a connection that was deleted and made anew, nor after a new one was issued', async () => {
      const credentials = await aVerifier()
      const cluster = aName()
      await declare(kube, cluster)
      const { token } = await credentials.issue(cluster)
      const secret = await kube.get(secrets, secretKey(`${cluster}-agent`))
      await kube.delete(connectionResource, secretKey(cluster))
      await declare(kube, cluster)
      const current = await kube.get(connectionResource, secretKey(cluster))
      await until(() =>
        expect(credentials.connections.get(secretKey(cluster))?.metadata.uid).toBe(current?.metadata.uid),
      )
      // Put back by whoever can write Secrets: the hashes are of another connection.
      if (!(await kube.get(secrets, secretKey(`${cluster}-agent`))) && secret) {
        const { resourceVersion: _, uid: __, ...metadata } = secret.metadata
        await kube.create(secrets, { ...secret, metadata })
      }
      expect(credentials.verify({ token, address })).toEqual(refused('unknown'))
      await credentials.issue(cluster).catch(() => credentials.issue(cluster)) // the collector of garbage may be at it
      expect(credentials.verify({ token, address })).toEqual(refused('unknown'))
    })

    it('knows clusters by certificate, until it is revoked or over', async () => {
      const credentials = await aVerifier()
      const cluster = aName()
      await declare(kube, cluster)
      await until(() =>
        expect(credentials.verify({ certificate: certificate(cluster), address })).toHaveProperty('peer'),
      )
      const verdict = credentials.verify({ certificate: certificate(cluster), address, token: 'ignored' })
      if (!('peer' in verdict)) throw new Error('refused')
      expect(verdict.peer).toMatchObject({ cluster, method: 'certificate' })
      expect(credentials.verify({ certificate: certificate(cluster, { notAfter: Date.now() - 1 }), address })).toEqual(
        refused('expired'),
      )
      expect(credentials.verify({ certificate: certificate('nobody'), address })).toEqual(refused('unknown'))
      await credentials.revoke(cluster, verdict.peer.credential)
      await until(() => expect(credentials.stillValid(verdict.peer)).toBe(false))
      expect(credentials.verify({ certificate: certificate(cluster), address })).toEqual(refused('revoked'))
      // A certificate stays revoked, whatever happens to the tokens.
      const { token } = await credentials.issue(cluster)
      await credentials.revoke(cluster)
      await until(() => expect(credentials.check(cluster, token)).toBeUndefined())
      expect(credentials.verify({ certificate: certificate(cluster), address })).toEqual(refused('revoked'))
    })

    it('asks a member to come back whose connection is still being made, and no stranger', async () => {
      const accepted = { counts: () => true, fault: () => undefined, onAccessChange: () => () => undefined }
      const credentials = await aVerifier({ members: accepted })
      const cluster = aName()
      const shown = {
        certificate: certificate(cluster, {
          commonName: memberUser({ cluster, agent: 'a' }),
          organizations: [memberGroup(cluster)],
        }),
        address,
      }
      expect(credentials.verify(shown)).toEqual(refused('not_yet'))
      expect(credentials.verify({ certificate: certificate(cluster), address })).toEqual(refused('unknown'))
      await declare(kube, cluster)
      await until(() => expect(credentials.verify(shown)).toHaveProperty('peer'))
    })

    it("takes the connection's own token for collectors of the original: in push mode, unshared, where that is allowed", async () => {
      const credentials = await aVerifier()
      const strict = await aVerifier({ acceptConnectionTokens: false })
      const [cluster, pulled, twin, other] = [aName(), aName(), aName(), aName()]
      const tokenOf = (name: string) => `service-account-of-${name}-0123456789`
      const spec = (name: string, mode = 'push') => ({
        collectionMode: mode,
        endpoint: 'https://api:6443',
        credentialsRef: { name },
      })
      for (const name of [cluster, pulled, twin]) {
        const data = { token: Buffer.from(`${tokenOf(name)}\n`).toString('base64') }
        await kube.create(secrets, { metadata: secretKey(`${name}-access`), data })
      }
      await declare(kube, cluster, spec(`${cluster}-access`))
      await declare(kube, pulled, spec(`${pulled}-access`, 'pull'))
      await declare(kube, twin, spec(`${twin}-access`))
      await until(() => expect(credentials.verify({ token: tokenOf(twin), address })).toHaveProperty('peer'))
      const verdict = credentials.verify({ token: tokenOf(cluster), address })
      if (!('peer' in verdict)) throw new Error('refused')
      expect(verdict.peer).toMatchObject({ cluster, method: 'connection-token' })
      expect(verdict.peer.credential).not.toContain('service-account')
      expect(strict.verify({ token: tokenOf(cluster), address })).toEqual(refused('unknown'))
      expect(credentials.verify({ token: tokenOf(pulled), address })).toEqual(refused('unknown'))
      // Two connections with one token: it cannot tell who speaks.
      await declare(kube, other, spec(`${twin}-access`))
      await until(() => expect(credentials.verify({ token: tokenOf(twin), address })).toEqual(refused('unknown')))
      expect([credentials.sharedWith(twin), credentials.sharedWith(other)]).toEqual([[other], [twin]])
      expect(credentials.sharedWith(cluster)).toEqual([])
      // A new token in the Secret ends streams that showed the old one.
      const data = { token: Buffer.from('another').toString('base64') }
      await kube.patch(secrets, secretKey(`${cluster}-access`), { data }, { kind: 'merge' })
      await until(() => expect(credentials.stillValid(verdict.peer)).toBe(false))
      expect(credentials.verify({ token: 'another', address })).toHaveProperty('peer')
    })

    it('issues nothing for a cluster nobody declared, and takes no Secret that is not its own', async () => {
      const credentials = await aVerifier()
      await expect(credentials.issue(parseClusterName('nobody'))).rejects.toThrow(UnknownConnectionError)
      const cluster = aName()
      await declare(kube, cluster)
      await kube.create(secrets, { metadata: secretKey(`${cluster}-agent`), data: { keep: 'YQ==' } })
      await expect(credentials.issue(cluster)).rejects.toThrow(/is not one of ours/)
      await credentials.revoke(cluster)
      expect((await kube.get(secrets, secretKey(`${cluster}-agent`)))?.data).toEqual({ keep: 'YQ==' })
    })

    it('plans what push connections say, and tells of each change', async () => {
      const credentials = await aVerifier()
      const defaults = { intervalMs: 30_000, timeoutMs: 10_000, operatorScanIntervalMs: 300_000 }
      const plans = agentPlans(credentials, namespace, defaults)
      const told: (string | undefined)[] = []
      plans.onChange((name) => told.push(name))
      const cluster = aName()
      await declare(kube, cluster, { monitoring: { interval: 45 } })
      await until(() =>
        expect(plans.planOf(cluster)).toMatchObject({ intervalMs: 45_000, timeoutMs: 10_000, sources: [] }),
      )
      const { version } = plans.planOf(cluster) ?? {}
      await kube.patch(connectionResource, secretKey(cluster), { spec: { displayName: 'x' } }, { kind: 'merge' })
      await kube.patch(
        connectionResource,
        secretKey(cluster),
        { spec: { monitoring: { interval: 5 } } },
        { kind: 'merge' },
      )
      await until(() => expect(plans.planOf(cluster)).toMatchObject({ intervalMs: 30_000 }))
      expect(plans.planOf(cluster)?.version).not.toBe(version)
      await kube.delete(connectionResource, secretKey(cluster))
      await until(() => expect(plans.planOf(cluster)).toBeUndefined())
      expect(told.filter((name) => name === cluster)).toHaveLength(3)
    })

    it('plans how often usage is read, and tells of it when somebody looks and when nobody does any more', async () => {
      const credentials = await aVerifier()
      const looked = new Set<string>()
      const listeners = new Set<(cluster: string) => void>()
      const usage = {
        rates: {
          of: (name: string, roundMs: number) => (looked.has(name) ? 5_000 : roundMs),
          onChange: (listener: (cluster: string) => void) => {
            listeners.add(listener)
            return () => listeners.delete(listener)
          },
        },
        kubeletsOf: () => 'direct' as const,
      }
      const defaults = { intervalMs: 30_000, timeoutMs: 10_000, operatorScanIntervalMs: 300_000, usage }
      const plans = agentPlans(credentials, namespace, defaults)
      const told: (string | undefined)[] = []
      const end = plans.onChange((name) => told.push(name))
      const cluster = aName()
      await declare(kube, cluster)
      await until(() =>
        expect(plans.planOf(cluster)).toMatchObject({
          refreshMs: 30_000,
          kubelets: 'direct',
          resources: ['node-usage', 'pod-usage'],
        }),
      )
      const { version } = plans.planOf(cluster) ?? {}
      told.length = 0
      looked.add(cluster)
      for (const name of [cluster, 'nobody']) for (const listener of listeners) listener(name)
      expect(told).toEqual([cluster])
      expect(plans.planOf(cluster)).toMatchObject({ refreshMs: 5_000, intervalMs: 30_000 })
      expect(plans.planOf(cluster)?.version).not.toBe(version)
      looked.clear()
      expect(plans.planOf(cluster)?.version).toBe(version)
      end()
      expect(listeners.size).toBe(0)
    })

    it('plans the sources in force, names plans by what they collect, and tells of each change until nobody listens', async () => {
      const credentials = await aVerifier()
      const defaults = { intervalMs: 30_000, timeoutMs: 10_000, operatorScanIntervalMs: 300_000 }
      const catalog = new MemoryCatalog()
      const plans = agentPlans(credentials, namespace, defaults, catalog)
      const told: (string | undefined)[] = []
      const end = plans.onChange((name) => told.push(name))
      const cluster = aName()
      await declare(kube, cluster)
      await until(() => expect(plans.planOf(cluster)?.sources).toEqual([]))
      const before = plans.planOf(cluster)?.version
      const definitionAt = (now: number, kind = 'Widget') =>
        compileMetricSource(
          {
            metadata: { name: 'widgets', namespace: 'ns' },
            spec: { source: { apiVersion: 'g.io/v1', kind }, fields: [{ name: 'name', path: '.metadata.name' }] },
          },
          now,
        ).source?.definition ?? {}
      told.length = 0
      await catalog.put(definitionAt(1_000))
      expect(told).toContain(cluster)
      const first = plans.planOf(cluster)
      expect(first?.sources).toEqual([definitionAt(1_000)])
      expect(first?.version).not.toBe(before)
      // The same, compiled later by another process.
      await catalog.put(definitionAt(9_000))
      expect(plans.planOf(cluster)?.version).toBe(first?.version)
      await catalog.put(definitionAt(9_000, 'Gadget'))
      expect(plans.planOf(cluster)?.version).not.toBe(first?.version)
      await catalog.remove('ns/widgets')
      expect(plans.planOf(cluster)?.version).toBe(before)
      end()
      told.length = 0
      await catalog.put(definitionAt(1_000))
      expect(told).toEqual([])
    })
  })
}
