import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Condition } from '#controller'
import type { ClusterConnection, ClusterConnectionSpec } from '#kinds'
import { type Batch, parseClusterName } from '#model'
import { type AccessInputs, decideAccess, secretFacts, serverOf } from './cluster-access.ts'
import { nextRoundMs, settingsOf } from './settings.ts'
import { type StatusInputs, statusPatch } from './status.ts'

const spec = { endpoint: 'https://west:6443', credentialsRef: { name: 'west' } }
const aConnection = (over: Partial<ClusterConnectionSpec> = {}): ClusterConnection => ({
  apiVersion: 'clusterpulse.io/v1alpha1',
  kind: 'ClusterConnection',
  metadata: { name: 'west', namespace: 'fleet' },
  spec: { ...spec, ...over },
})
const defaults = { intervalMs: 45_000, timeoutMs: 12_000, operatorScanIntervalMs: 300_000 }

describe('settingsOf', () => {
  it.each([
    [undefined, 45_000, 0],
    [0, 45_000, 0],
    [-5, 45_000, 1],
    [1, 30_000, 1],
    [29, 30_000, 1],
    [30, 30_000, 0],
    [3600, 3_600_000, 0],
  ])('takes an interval of %s seconds as %d ms', (interval, intervalMs, adjusted) => {
    const { facts, adjustments } = settingsOf(
      aConnection(interval === undefined ? {} : { monitoring: { interval } }),
      defaults,
    )
    expect(facts.intervalMs).toBe(intervalMs)
    expect(adjustments).toHaveLength(adjusted)
  })

  it.each([
    [undefined, 12_000],
    [0, 12_000],
    [-1, 12_000],
    [1, 5_000],
    [5, 5_000],
    [60, 60_000],
  ])('takes a timeout of %s seconds as %d ms', (timeout, timeoutMs) => {
    expect(
      settingsOf(aConnection(timeout === undefined ? {} : { monitoring: { timeout } }), defaults).facts.timeoutMs,
    ).toBe(timeoutMs)
  })

  it('takes labels of the spec, and of the object the set that its member is in, which counts', () => {
    const set = 'cluster.open-cluster-management.io/clusterset'
    const labelled = (labels: Record<string, string>, ofSpec: Record<string, string>) => {
      const { metadata, ...rest } = aConnection({ labels: ofSpec })
      return settingsOf({ ...rest, metadata: { ...metadata, labels } }, defaults).facts.labels
    }
    expect(labelled({ [set]: 'prod', team: 'a' }, { environment: 'x' })).toEqual({ [set]: 'prod', environment: 'x' })
    expect(labelled({ [set]: 'prod' }, { [set]: 'lab' })).toEqual({ [set]: 'prod' })
    expect(labelled({}, { [set]: 'lab' })).toEqual({ [set]: 'lab' })
  })

  it('says how often operators are read, which nothing else tells whoever shows them', () => {
    const { facts } = settingsOf(aConnection({}), { ...defaults, operatorScanIntervalMs: 120_000 })
    expect(facts.operatorScanIntervalMs).toBe(120_000)
  })

  it('shows the name where no other is given, and refers to the Secret as written', () => {
    expect(settingsOf(aConnection({ displayName: '' }), defaults).facts).toMatchObject({
      displayName: 'west',
      credentialsRef: { name: 'west', namespace: '' },
      mode: 'pull',
      labels: {},
    })
  })

  it('begins rounds an interval apart, sooner after a failure, never in the past', () => {
    expect(nextRoundMs(30_000, false, 4_000)).toBe(26_000)
    expect(nextRoundMs(30_000, false, 40_000)).toBe(1_000)
    expect(nextRoundMs(30_000, true, 4_000)).toBe(30_000)
    expect(nextRoundMs(600_000, true, 4_000)).toBe(60_000)
    expect(nextRoundMs(30_000, true, 4_000, 1_000)).toBe(1_000)
    expect(nextRoundMs(30_000, false, 4_000, 1_000)).toBe(26_000)
  })
})

const decide = (
  data: Readonly<Record<string, string>> | undefined,
  over: Partial<ClusterConnectionSpec> = {},
  inputs: Partial<AccessInputs> = {},
) =>
  decideAccess(
    { ...spec, ...over },
    {
      secretName: 'fleet/west',
      secret:
        data &&
        secretFacts({
          metadata: { name: 'west' },
          data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, Buffer.from(v).toString('base64')])),
        }),
      localKubeconfig: undefined,
      allowLocalKubeconfig: false,
      ...inputs,
    },
  )
const CA = '-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n'

describe('decideAccess', () => {
  it.each<[string, Record<string, string>, Partial<ClusterConnectionSpec>, object]>([
    [
      'a token, trusting the roots of the system',
      { token: 'abc\n' },
      {},
      { server: 'https://west:6443', verifyTls: true, credentials: { kind: 'token', token: 'abc' } },
    ],
    ['a token and a CA', { token: 'abc', 'ca.crt': CA }, {}, { ca: CA.trim(), verifyTls: true }],
    [
      'a client certificate',
      { 'tls.crt': 'C', 'tls.key': 'K' },
      {},
      { credentials: { kind: 'certificate', cert: 'C', key: 'K' } },
    ],
    [
      'the token where both are there',
      { token: 'abc', 'tls.crt': 'C', 'tls.key': 'K' },
      {},
      { credentials: { kind: 'token', token: 'abc' } },
    ],
    ['no verification, by choice only', { token: 'abc' }, { insecureSkipTLSVerify: true }, { verifyTls: false }],
    [
      'another name for the certificate, and a proxy',
      { token: 'abc' },
      { tlsServerName: 'api', proxyURL: 'http://p:1' },
      { tlsServerName: 'api', proxyUrl: 'http://p:1' },
    ],
  ])('takes %s', async (_, data, over, access) => expect(await decide(data, over)).toMatchObject({ access }))

  it('sends no token in the clear without the explicit choice', async () => {
    expect(await decide({ token: 'abc' }, { endpoint: 'http://west' })).not.toHaveProperty('access.allowHttp')
    expect(await decide({ token: 'abc' }, { endpoint: 'http://west', insecureSkipTLSVerify: true })).toHaveProperty(
      'access.allowHttp',
      true,
    )
  })

  it.each<[string, Record<string, string> | undefined, string]>([
    ['a Secret that is not there', undefined, 'secret_missing'],
    ['an empty Secret', {}, 'secret_incomplete'],
    ['an empty token', { token: ' \n' }, 'secret_incomplete'],
    ['half a certificate', { 'tls.crt': 'C' }, 'secret_incomplete'],
    ['a token with a line break inside', { token: 'a\nb' }, 'secret_malformed'],
    ['a CA that is none', { token: 'abc', 'ca.crt': 'hello' }, 'secret_malformed'],
    ['a kubeconfig that is none', { kubeconfig: 'hello' }, 'kubeconfig_malformed'],
    ['a kubeconfig without that context', { kubeconfig: 'kind: Config', context: 'west' }, 'kubeconfig_malformed'],
    ['a file of this machine', { kubeconfigPath: '/etc/passwd' }, 'local_kubeconfig_refused'],
  ])('refuses %s', async (_, data, code) => expect(await decide(data)).toMatchObject({ fault: { code } }))

  it('never says what a Secret holds', async () => {
    const secret = fc.string({ minLength: 12 }).map((text) => `s3cret${text}`)
    const keys = ['token', 'ca.crt', 'tls.crt', 'tls.key', 'context'] as const
    await fc.assert(
      fc.asyncProperty(fc.subarray([...keys]), secret, async (present, value) => {
        const decision = await decide(Object.fromEntries(present.map((key) => [key, value])))
        if ('fault' in decision) expect(decision.fault.message).not.toContain('s3cret')
      }),
    )
  })

  it.each([
    ['api:6443', 'https://api:6443'],
    ['https://api:6443/', 'https://api:6443'],
    ['http://api', 'http://api'],
  ])('reads the address %s as %s', (endpoint, server) => expect(serverOf(endpoint)).toBe(server))

  it('holds nothing of a Secret but what it needs', () => {
    const secret = secretFacts({ metadata: { name: 'w', managedFields: [{}] }, data: { token: 'YWJj', other: 'YWJj' } })
    expect(secret).toEqual({ metadata: { name: 'w' }, access: { token: 'abc' } })
  })
})

const batch: Batch = {
  cluster: parseClusterName('west'),
  sequence: 1,
  source: 'pull',
  collectedAt: Date.UTC(2026, 0, 1),
  durationMs: 5,
  parts: [],
}
const inputs = (over: Partial<StatusInputs> = {}): StatusInputs => ({
  stored: undefined,
  generation: 1,
  end: { kind: 'collected', batch },
  state: undefined,
  tls: 'verified',
  adjustments: [],
  polled: [],
  collector: undefined,
  leftAgent: undefined,
  held: undefined,
  credentials: undefined,
  buffer: undefined,
  agent: undefined,
  isDelivering: false,
  owner: undefined,
  now: batch.collectedAt,
  ...over,
})

const conditionsIn = (patch: Readonly<Record<string, unknown>> | undefined) => (patch?.conditions ?? []) as Condition[]

describe('statusPatch', () => {
  it('writes nothing a second time', () => {
    const first = statusPatch(inputs())
    expect(first).toMatchObject({ phase: 'Connected', lastSyncTime: '2026-01-01T00:00:00Z' })
    expect(statusPatch(inputs({ stored: first as never, now: batch.collectedAt + 5000 }))).toBeUndefined()
  })

  it('moves the time of the last sync at most once a minute while nothing else changes', () => {
    const stored = statusPatch(inputs()) as never
    const later = (ms: number) =>
      statusPatch(
        inputs({ stored, end: { kind: 'collected', batch: { ...batch, collectedAt: batch.collectedAt + ms } } }),
      )
    expect(later(59_000)).toBeUndefined()
    expect(later(60_000)).toEqual({ lastSyncTime: '2026-01-01T00:01:00Z' })
  })

  it('writes the time of the last sync along when something else changes', () => {
    const stored = { ...statusPatch(inputs()), phase: 'Error' } as never
    const end = { kind: 'collected' as const, batch: { ...batch, collectedAt: batch.collectedAt + 1000 } }
    expect(statusPatch(inputs({ stored, end }))).toMatchObject({
      phase: 'Connected',
      lastSyncTime: '2026-01-01T00:00:01Z',
    })
  })

  it('keeps counts and last sync of before when a round fails', () => {
    const stored = { ...statusPatch(inputs()), nodes: 3 } as never
    const patch = statusPatch(
      inputs({ stored, end: { kind: 'failed', blame: 'cluster', code: 'kube_timeout', message: 'slow' } }),
    )
    expect(patch).toMatchObject({ phase: 'Error', health: 'unhealthy', message: 'slow' })
    expect(patch).not.toHaveProperty('nodes')
    expect(patch).not.toHaveProperty('lastSyncTime')
  })

  it('says who owns the cluster, once, and takes that back where one process owns all again', () => {
    const shared = statusPatch(inputs({ owner: 'owner-2' }))
    expect(shared).toMatchObject({ owner: 'owner-2' })
    const stored = shared as never
    expect(statusPatch(inputs({ stored, owner: 'owner-2' }))).toBeUndefined()
    expect(statusPatch(inputs({ stored, owner: 'owner-1' }))).toEqual({ owner: 'owner-1' })
    expect(statusPatch(inputs({ stored }))).toEqual({ owner: null })
    expect(statusPatch(inputs())).not.toHaveProperty('owner')
  })

  it('is Connecting before the first round only', () => {
    expect(statusPatch(inputs({ end: { kind: 'connecting' } }))).toMatchObject({
      phase: 'Connecting',
      health: 'unknown',
    })
    const stored = statusPatch(inputs()) as never
    expect(statusPatch(inputs({ stored, end: { kind: 'connecting' } }))).not.toHaveProperty('phase')
  })

  it.each([
    ['kube_unreachable', 'False', 'Unknown'],
    ['kube_tls', 'False', 'Unknown'],
    ['kube_timeout', 'False', 'Unknown'],
    ['kube_unauthorized', 'True', 'False'],
    ['kube_forbidden', 'True', 'True'],
  ])('after %s calls the cluster reachable: %s, the credentials valid: %s', (code, reachable, valid) => {
    const patch = statusPatch(inputs({ end: { kind: 'failed', blame: 'cluster', code, message: 'm' } }))
    const said = Object.fromEntries(conditionsIn(patch).map(({ type, status }) => [type, status]))
    expect(said).toMatchObject({ Ready: 'False', Reachable: reachable, CredentialsValid: valid })
  })

  it('follows the generation in every condition it states', () => {
    const stored = statusPatch(inputs()) as never
    const patch = statusPatch(inputs({ stored, generation: 2 }))
    expect(new Set(conditionsIn(patch).map(({ observedGeneration }) => observedGeneration))).toEqual(new Set([2]))
  })
})
