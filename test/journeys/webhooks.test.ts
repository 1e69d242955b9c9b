import { X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { connect, type PeerCertificate } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { aRequest, signingRequest, subjectOfMember } from '../../src/platform/authority/test/requests.ts'
import {
  embeddedHub,
  type KubernetesHub,
  kubectlOf,
  kubernetesHub,
  type MemberHub,
  noKubernetesHub,
  noOwnAddress,
} from '../member-hub.ts'
import { eventually } from '../process.ts'

const why = noKubernetesHub() ?? noOwnAddress()
const CLUSTER = 'cluster.open-cluster-management.io'
const SET = `${CLUSTER}/clusterset`
const HUB = '--as=system:serviceaccount:clusterpulse:clusterpulse-manager'

const aCluster = (name: string, spec: object = {}, labels = {}) =>
  JSON.stringify({ apiVersion: `${CLUSTER}/v1`, kind: 'ManagedCluster', metadata: { name, labels }, spec })
const aWork = (spec: object) =>
  JSON.stringify({
    ...{ apiVersion: 'work.open-cluster-management.io/v1', kind: 'ManifestWork' },
    ...{ metadata: { name: 'web', namespace: 'default' }, spec },
  })
const aBinding = (name: string, clusterSet: string) =>
  JSON.stringify({
    ...{ apiVersion: `${CLUSTER}/v1beta2`, kind: 'ManagedClusterSetBinding' },
    ...{ metadata: { name, namespace: 'default' }, spec: { clusterSet } },
  })
const executor = { subject: { type: 'ServiceAccount', serviceAccount: { namespace: 'default', name: 'robot' } } }
const manifest = (apiVersion: string) => ({ apiVersion, kind: 'Deployment', metadata: { name: 'a', namespace: 'b' } })
const twice = { workload: { manifests: [manifest('apps/v1'), manifest('apps/v1beta1')] } }
const AS_ANN = ['--as=ann']
const BOOTSTRAP = 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap'
const MEMBER = 'system:open-cluster-management:west:a'
const create = (object: string, as: readonly string[] = []) => ({ args: ['create', '-f', '-', ...as], object })
const change = (patch: object, as: readonly string[] = []) => ({
  args: ['patch', 'managedcluster', 'west', '--type=merge', '-p', JSON.stringify(patch), ...as],
  object: undefined,
})

const refused: readonly (readonly [
  string,
  { readonly args: readonly string[]; readonly object: string | undefined },
])[] = [
  ['a name that is no namespace', create(aCluster('a.b'))],
  ['an address without TLS', create(aCluster('east', { managedClusterClientConfigs: [{ url: 'http://east' }] }))],
  ['a member that is made accepted', create(aCluster('east', { hubAcceptsClient: true }), AS_ANN)],
  ['an acceptance', change({ spec: { hubAcceptsClient: true } }, AS_ANN)],
  ['a set', change({ metadata: { labels: { [SET]: 'prod' } } }, AS_ANN)],
  [
    'a time that a taint did not have',
    change({ spec: { taints: [{ key: 'b', effect: 'NoSelect', timeAdded: '2020-01-01T00:00:00Z' }] } }),
  ],
  ['a binding of another name', create(aBinding('a', 'b'))],
  ['a binding', create(aBinding('prod', 'prod'), AS_ANN)],
  ['an executor', create(aWork({ executor }), AS_ANN)],
  ['a label, with a bootstrap kubeconfig', change({ metadata: { labels: { a: 'b' } } }, [`--as=${BOOTSTRAP}`])],
  ['the heartbeat of a member, by itself', change({ spec: { leaseDurationSeconds: 9_000 } }, [`--as=${MEMBER}`])],
  ['one object in two versions', create(aWork(twice))],
]

/** What an API server says, with a webhook called what it is at the embedded API. */
const wordsOf = (said: string): string =>
  said
    .replace(/^kubectl [\s\S]*? ended with 1: /, '')
    .replace(/admission webhook "([^"]+)" denied the request: /, 'admission rule "$1" denied the request: ')
    .replace(/error when creating "STDIN": /, '')
    .trim()

describe.skipIf(why !== undefined)(
  `rules on members, on Kubernetes${why === undefined ? '' : ` (not run: ${why})`}`,
  () => {
    let folder: string
    let embedded: MemberHub
    let real: KubernetesHub
    const both = () => [embedded, real].map(({ kubeconfig }) => kubectlOf(kubeconfig))

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'webhooks-'))
      embedded = await embeddedHub(folder)
      real = await kubernetesHub(folder, { asksService: true })
      for (const kubectl of both()) {
        const allow = async (name: string, verbs: string, resource: string) => {
          await kubectl(['create', 'clusterrole', name, `--verb=${verbs}`, `--resource=${resource}`])
          const users = ['ann', BOOTSTRAP, MEMBER].map((user) => `--user=${user}`)
          await kubectl(['create', 'clusterrolebinding', name, `--clusterrole=${name}`, ...users])
        }
        await allow('clusters', 'get,create,patch,update', `managedclusters.${CLUSTER}`)
        await allow('bindings', 'create', `managedclustersetbindings.${CLUSTER}`)
        await allow('works', 'create', 'manifestworks.work.open-cluster-management.io')
        await kubectl(['create', '-f', '-'], aCluster('west'))
      }
    })
    afterAll(async () => {
      await real?.[Symbol.asyncDispose]()
      await embedded?.[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    })

    it('refuses there what the embedded API refuses, in the same words', async () => {
      const [here, there] = both()
      for (const [what, { args, object }] of refused) {
        const said = (kubectl: typeof here) =>
          kubectl?.(args, object).then(
            () => `${what}: not refused`,
            (error: Error) => wordsOf(error.message),
          )
        const [ours, theirs] = await Promise.all([said(here), said(there)])
        expect(ours, what).toMatch(/^(Error from server \(Forbidden\): admission rule "|The \w+ "[^"]+" is invalid: )/)
        expect(theirs, what).toBe(ours)
      }
    })

    it('completes there what the embedded API completes', async () => {
      const path = `jsonpath={.metadata.labels.${SET.replaceAll('.', '\\.')}} {.spec.taints[0].timeAdded}`
      const made = await Promise.all(
        both().map(async (kubectl) => {
          await kubectl(['create', '-f', '-'], aCluster('north', { taints: [{ key: 'a', effect: 'NoSelect' }] }))
          return kubectl(['get', 'managedcluster', 'north', '-o', path])
        }),
      )
      for (const text of made) expect(text).toMatch(/^default 20\d\d-.*Z$/)
    })

    it('has in both trails who approved and accepted, and what a member wrote', async () => {
      const agent = ['--as=system:open-cluster-management:west:a', '--as-group=system:open-cluster-management:west']
      const { pem } = await aRequest(subjectOfMember('west', 'a'))
      const labels = { 'open-cluster-management.io/cluster-name': 'west' }
      const request = JSON.stringify({
        ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest' },
        ...{ ...signingRequest(pem, {}, labels), metadata: { name: 'west-1', labels } },
      })
      for (const hub of [embedded, real]) {
        const kubectl = kubectlOf(hub.kubeconfig)
        await kubectl(['create', '-f', '-'], request)
        await kubectl(['certificate', 'approve', 'west-1'])
        await kubectl(['patch', 'managedcluster', 'west', '--type=merge', '-p', '{"spec":{"hubAcceptsClient":true}}'])
        await kubectl(['wait', '--for=condition=HubAcceptedManagedCluster', '--timeout=60s', 'managedcluster/west'])
        const own = JSON.parse(await kubectl(['get', 'managedcluster', 'west', '-o', 'json', ...agent]))
        const path = `/apis/${CLUSTER}/v1/managedclusters/west`
        // The one part of it that its agent may change.
        const managedClusterClientConfigs = [{ url: 'https://west.example:6443' }]
        const reached = { ...own, spec: { ...own.spec, managedClusterClientConfigs } }
        await eventually(
          () => kubectl(['replace', '--raw', path, '-f', '-', ...agent], JSON.stringify(reached)),
          () => true,
        )
        const routes = ['request_made', 'request_approved', 'cluster_accepted', 'member_write']
        // What was refused before is there as well, and nobody waits for what a member did to be written down.
        const done = (all: Awaited<ReturnType<MemberHub['trail']>>, route: string) =>
          all.find((one) => one.route === route && one.resource === 'managedcluster west' && one.status === 200)
        const entries = await eventually(
          () => hub.trail(),
          (all) => routes.every((route) => done(all, route)),
        )
        const entry = (route: string) => done(entries, route)
        expect(entry('request_approved')).toMatchObject({ requestId: 'west-1', username: 'admin', status: 200 })
        expect(entry('cluster_accepted')).toMatchObject({
          username: 'admin',
          requestId: expect.stringMatching(/^[\w-]{36}$/),
        })
        expect(entry('member_write')).toMatchObject({
          ...{ kind: 'member', username: 'system:open-cluster-management:west:a' },
          reason: `changed managedclusters.${CLUSTER} west`,
        })
        // Whom a rule refused before is there as well; an API server of Kubernetes keeps that to its own log.
        const refused = entries.filter((one) => one.username === 'ann' && one.route === 'cluster_accepted')
        expect(new Set(refused.map(({ status }) => status))).toEqual(new Set(hub === embedded ? [403] : []))
        // What the hub does for itself is nobody's decision.
        expect(entries.filter(({ username }) => /clusterpulse/.test(username))).toEqual([])
      }
      // The embedded API is ours: there the trail also has what a member was refused.
      await expect(kubectlOf(embedded.kubeconfig)(['get', 'secrets', '-n', 'default', ...agent])).rejects.toThrow(
        /forbidden/,
      )
      const ours = await eventually(
        () => embedded.trail(),
        (all) => all.some(({ route }) => route === 'member_refused'),
      )
      expect(ours.find(({ route }) => route === 'member_refused')).toMatchObject({
        ...{ status: 403, resource: 'managedcluster west', reason: expect.stringContaining('secrets') },
      })
    })

    it('takes so many requests of a member and no more, on both, and none for another cluster', async () => {
      const as = ['--as=system:open-cluster-management:west:a', '--as-group=system:open-cluster-management:west']
      // For another agent of its cluster: a person is to decide.
      const { pem } = await aRequest(subjectOfMember('west', 'b'))
      const request = (cluster: string) => {
        const labels = { 'open-cluster-management.io/cluster-name': cluster }
        const { spec } = signingRequest(pem, {}, labels)
        const metadata = { generateName: `${cluster}-`, labels }
        return JSON.stringify({
          apiVersion: 'certificates.k8s.io/v1',
          kind: 'CertificateSigningRequest',
          metadata,
          spec,
        })
      }
      for (const hub of [embedded, real]) {
        const kubectl = kubectlOf(hub.kubeconfig)
        const ask = (cluster = 'west') => kubectl(['create', '-f', '-', ...as], request(cluster)).catch(String)
        for (let n = 0; n < 10; n++) expect(await ask()).toContain('created')
        expect(await ask()).toContain('10 requests of west wait for a decision; approve one or deny them first')
        expect(await ask('east')).toContain('a member west may ask for its own cluster alone')
      }
    })

    it('answers its API server alone, by a word that no manifest has', async () => {
      const [, kubectl] = both()
      const path = 'jsonpath={.webhooks[?(@.name=="audit.clusterpulse.io")].clientConfig.service.path}'
      const told =
        (await kubectl?.(['get', 'validatingwebhookconfiguration', 'clusterpulse-members', '-o', path])) ?? ''
      expect(told).toMatch(/^\/audit\/[0-9a-f]{40}$/)
      const url = real.webhooks + told
      const statusOf = (at: string) =>
        new Promise((resolve, reject) => {
          const call = request(at, { method: 'POST', rejectUnauthorized: false }, (response) => {
            response.resume()
            resolve(response.statusCode)
          })
          call.on('error', reject)
          call.end('{}')
        })
      expect(await statusOf(url.replace(/\/[0-9a-f]{40}$/, ''))).toBe(403)
      expect(await statusOf(url)).toBe(400)
    })

    it('is asked through its Service, by the name of that in its certificate and by the CA in each webhook', async () => {
      const [, kubectl] = both()
      const configurations = ['mutatingwebhookconfiguration', 'validatingwebhookconfiguration'].map(async (kind) => {
        const { webhooks } = JSON.parse((await kubectl?.(['get', kind, 'clusterpulse-members', '-o', 'json'])) ?? '{}')
        return webhooks as readonly { readonly clientConfig: Readonly<Record<string, object | string>> }[]
      })
      const { hostname, port } = new URL(real.webhooks)
      const shown = await new Promise<PeerCertificate>((resolve, reject) => {
        const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate())
          socket.destroy()
        })
        socket.once('error', reject)
      })
      expect(shown.subjectaltname).toBe('DNS:clusterpulse-webhooks.clusterpulse.svc')
      for (const { clientConfig } of (await Promise.all(configurations)).flat()) {
        expect(clientConfig.url).toBeUndefined()
        expect(clientConfig.service).toMatchObject({
          namespace: 'clusterpulse',
          name: 'clusterpulse-webhooks',
          port: 443,
        })
        const ca = new X509Certificate(Buffer.from(String(clientConfig.caBundle), 'base64'))
        expect(new X509Certificate(shown.raw).checkIssued(ca)).toBe(true)
      }
    })

    it('stays as it is when its manifest is applied again, in both ways to apply', async () => {
      const [, kubectl] = both()
      const kinds = 'mutatingwebhookconfiguration,validatingwebhookconfiguration'
      const ask = () => kubectl?.(['get', kinds, '-o', 'jsonpath={.items[*].webhooks[*].clientConfig}'])
      const before = await ask()
      for (const how of [['--server-side'], ['--server-side', '--force-conflicts']])
        await kubectl?.(['apply', ...how, '-f', resolve('deploy/components/members/webhooks.yaml')])
      expect(await ask()).toBe(before)
      expect(before).toContain('/audit/')
    })

    it('goes on when somebody takes its CA out of the configuration', { tags: ['long'] }, async () => {
      const [, kubectl] = both()
      const patch = '[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":""}]'
      const bundle = () =>
        kubectl?.([
          'get',
          'validatingwebhookconfiguration',
          'clusterpulse-members',
          '-o',
          'jsonpath={.webhooks[0].clientConfig.caBundle}',
        ])
      const before = await bundle()
      expect(before).toMatch(/^LS0t/)
      // What is stored by that: a moment later it is put right, which an API server may not even notice.
      const stored = ['-o', 'jsonpath={.webhooks[0].clientConfig.caBundle}']
      const named = ['validatingwebhookconfiguration', 'clusterpulse-members']
      expect(await kubectl?.(['patch', ...named, '--type=json', '-p', patch, ...stored])).toBe('')
      await expect.poll(bundle).toBe(before)
      await eventually(
        async () => (await kubectl?.(['create', '--dry-run=server', '-f', '-'], aCluster('south'))) ?? '',
        (said) => said.includes('created'),
      )
    })

    it('lets nobody change members while no manager runs, but the hub itself', async () => {
      const [, kubectl] = both()
      await real.killManager()
      const label = (as: readonly string[]) =>
        kubectl?.(['label', 'managedcluster', 'west', '--overwrite', 'a=b', ...as])
      await expect(label([])).rejects.toThrow(/failed calling webhook "managedclusters.admission.clusterpulse.io"/)
      expect(await label([HUB])).toContain('labeled')
      real.startManager()
      await eventually(
        async () => (await kubectl?.(['create', '--dry-run=server', '-f', '-'], aCluster('south'))) ?? '',
        (said) => said.includes('created'),
        90_000,
      )
    })
  },
)
