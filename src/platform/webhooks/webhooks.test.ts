import { request } from 'node:https'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { managedCluster, managedClusterAddOn, managedClusterSetBinding, ocmAdmission, ocmKinds } from '#kinds'
import {
  createKubeClient,
  customResourceDefinitions,
  type KubeClient,
  type KubeError,
  type KubeObject,
  type Resource,
} from '#kube'
import { systemClock } from '#model'
import { silentLogger } from '#runtime'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { type Identity, identity } from '../kube/testing/scripted-server.ts'
import { listenWebhooks, type WebhookListener, webhookConfigurations } from './index.ts'

const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

const SET = 'cluster.open-cluster-management.io/clusterset'
const resourceOf = (
  kind: { group: string; version: string; plural: string },
  name: string,
  namespaced = false,
): Resource => ({
  group: kind.group,
  version: kind.version,
  plural: kind.plural,
  kind: name,
  namespaced,
})
const clusters = resourceOf(managedCluster, 'ManagedCluster')
const bindings = resourceOf(managedClusterSetBinding, 'ManagedClusterSetBinding', true)
const addOns = resourceOf(managedClusterAddOn, 'ManagedClusterAddOn', true)
const rbac = (plural: string, kind: string): Resource => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
})

const aCluster = (name: string, spec: object = {}, labels?: Record<string, string>): KubeObject => ({
  metadata: { name, ...(labels && { labels }) },
  spec,
})

const asked = ({ port }: WebhookListener, { ca }: Identity, method: string, path: string, body: string) =>
  new Promise<{ code: number | undefined; text: string; kept: unknown }>((resolve, reject) => {
    const call = request(`https://127.0.0.1:${port}${path}`, { method, ca }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part) => {
        text += part
      })
      response.on('end', () => resolve({ code: response.statusCode, text, kept: response.headers['keep-alive'] }))
    })
    call.on('error', reject)
    call.end(body)
  })

it('webhooks that have a word answer nobody who does not know it, and write nothing down', async () => {
  const tls = await identity()
  const written: string[] = []
  await using webhooks = await listenWebhooks({
    ...{ rules: ocmAdmission, tls, port: 0, logger: silentLogger },
    kube: undefined as unknown as KubeClient, // nothing that is asked here needs it
    word: () => 'a1b2',
    async onWrite({ uid }) {
      await systemClock.sleep(20) // as a disk that is slow
      written.push(uid)
    },
  })
  const review = (uid: string) =>
    JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request: { uid } })
  const rule = ocmAdmission[0]?.name ?? ''
  for (const path of [
    '/audit',
    '/audit/',
    '/audit/a1b',
    '/audit/a1b2/',
    '/a1b2/audit',
    '/audit?a1b2',
    `/validate/${rule}`,
  ])
    expect([path, await asked(webhooks, tls, 'POST', path, review('forged'))]).toMatchObject([
      path,
      { code: 403, text: expect.stringContaining('only the API server') },
    ])
  expect(await asked(webhooks, tls, 'POST', '/audit/a1b2', review('true'))).toMatchObject({ code: 200 })
  expect(written).toEqual(['true'])
  const refused = JSON.stringify({
    ...{ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' },
    request: {
      ...{ uid: 'refused beside it', operation: 'CREATE', userInfo: { username: 'ann' } },
      resource: { group: managedCluster.group, version: managedCluster.version, resource: managedCluster.plural },
      object: aCluster('a.b'),
    },
  })
  expect(await asked(webhooks, tls, 'POST', '/audit/a1b2', refused)).toMatchObject({ code: 200 })
  expect(written).toEqual(['true'])
})

it('webhooks leave it to the API server to close a connection, which does so after 90 s', async () => {
  const tls = await identity()
  const kube = undefined as unknown as KubeClient
  await using webhooks = await listenWebhooks({ rules: [], tls, port: 0, logger: silentLogger, kube })
  expect(await asked(webhooks, tls, 'GET', '/', '')).toMatchObject({ kept: 'timeout=120' })
})

describe.skipIf(skip)(`webhooks of a real kube-apiserver${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let real: RealApiServer
  let kube: KubeClient
  let webhooks: WebhookListener
  let tls: Identity
  const ann = { user: 'ann' }

  async function allow(name: string, group: string, resource: string, ...verbs: string[]): Promise<void> {
    await kube.create(rbac('clusterroles', 'ClusterRole'), {
      metadata: { name },
      rules: [{ apiGroups: [group], resources: [resource], verbs }],
    })
    await kube.create(rbac('clusterrolebindings', 'ClusterRoleBinding'), {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    })
  }

  beforeAll(async () => {
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    real = started
    kube = createKubeClient(real.access)
    tls = await identity()
    const converters = ocmKinds.flatMap((kind) => kind.converters)
    webhooks = await listenWebhooks({ rules: ocmAdmission, converters, kube, tls, port: 0, logger: silentLogger })
    const reached = { url: `https://127.0.0.1:${webhooks.port}`, caBundle: tls.ca }
    const conversion = {
      strategy: 'Webhook',
      webhook: {
        conversionReviewVersions: ['v1'],
        clientConfig: { url: `${reached.url}/convert`, caBundle: Buffer.from(tls.ca).toString('base64') },
      },
    }
    for (const kind of ocmKinds) {
      const crd = kind.crd({ converts: true })
      const spec = { ...crd.spec, ...(kind.converters.length > 0 && { conversion }) }
      await kube.create(customResourceDefinitions, { ...crd, spec } as unknown as KubeObject)
    }
    for (const configuration of webhookConfigurations({ name: 'clusterpulse', rules: ocmAdmission, reached })) {
      const { kind } = configuration as { kind: string }
      const plural = `${kind.toLowerCase()}s`
      await kube.request('POST', `/apis/admissionregistration.k8s.io/v1/${plural}`, { body: configuration })
    }
    // A server asks webhooks it has just heard of after a moment.
    const trial = { metadata: { name: 'a.b' }, spec: {} }
    await vi.waitFor(
      () =>
        expect(kube.create(clusters, trial, undefined, { dryRun: true })).rejects.toMatchObject({
          message: expect.stringMatching(/: admission webhook "[^"]+" denied the request: (?!.*denied the request)/),
        }),
      { timeout: 120_000 },
    )
  })
  afterAll(async () => {
    await kube?.[Symbol.asyncDispose]()
    await webhooks?.[Symbol.asyncDispose]()
    await real?.stop()
  })

  it('complete clusters, and set the times of their taints', async () => {
    const made = await kube.create(clusters, aCluster('west', { taints: [{ key: 'a', effect: 'NoSelect' }] }))
    expect(made.metadata.labels).toEqual({ [SET]: 'default' })
    expect(made).toMatchObject({ spec: { hubAcceptsClient: false, taints: [{ timeAdded: expect.any(String) }] } })
    const again = await kube.replace(clusters, {
      ...made,
      spec: { ...(made.spec as object), taints: [{ key: 'a', effect: 'NoSelect' }] },
    })
    expect(again.spec).toEqual(made.spec)
  })

  it('refuse what is wrong, naming rule and place', async () => {
    const wrong = aCluster('east', { managedClusterClientConfigs: [{ url: 'http://east' }] })
    await expect(kube.create(clusters, wrong)).rejects.toMatchObject({
      reason: 'invalid',
      message: expect.stringMatching(
        /managedclusters\.admission\.clusterpulse\.io.*managedClusterClientConfigs\[0\]\.url/,
      ),
    })
    const binding = { metadata: { name: 'a', namespace: 'default' }, spec: { clusterSet: 'b' } }
    await expect(kube.create(bindings, binding)).rejects.toMatchObject({ reason: 'invalid' })
  })

  it('ask whether the writer may join the set and accept the cluster', async () => {
    await allow('clusters', managedCluster.group, 'managedclusters', 'create', 'get', 'update')
    const north = aCluster('north', { hubAcceptsClient: true })
    const asAnn = () => kube.create(clusters, north, undefined, { as: ann })
    // A server that was told of a right knows it a moment later.
    const asked = () =>
      expect.poll(() =>
        asAnn().then(
          () => ({ reason: 'made' }),
          ({ reason, message }: KubeError) => ({ reason, message }),
        ),
      )
    const refusal = (resource: string) => ({
      reason: 'forbidden',
      message: expect.stringContaining(`user "ann" cannot ${resource}`),
    })
    await asked().toMatchObject(refusal('update managedclusters/accept.register.open-cluster-management.io "north"'))
    await allow('accept', 'register.open-cluster-management.io', 'managedclusters/accept', 'update')
    await asked().toMatchObject(refusal('create managedclustersets/join.cluster.open-cluster-management.io "default"'))
    await allow('join', managedCluster.group, 'managedclustersets/join', 'create')
    await asked().toEqual({ reason: 'made' })
  })

  it('turn add-ons of one version into the other', async () => {
    const older: Resource = { ...addOns, version: 'v1alpha1' }
    const key = { name: 'hello', namespace: 'default' }
    await kube.create(older, { metadata: key, spec: { installNamespace: 'here' } })
    const newer = await kube.get(addOns, key)
    expect(newer).toMatchObject({
      apiVersion: 'addon.open-cluster-management.io/v1beta1',
      metadata: { annotations: { 'addon.open-cluster-management.io/v1alpha1-install-namespace': 'here' } },
    })
    const registrations = [{ type: 'kubeClient', kubeClient: { driver: 'csr' } }]
    await kube.patch(addOns, key, { status: { registrations } }, { kind: 'merge', subresource: 'status' })
    expect(await kube.get(older, key)).toMatchObject({
      spec: { installNamespace: 'here' },
      status: { kubeClientDriver: 'csr' },
    })
  })

  it('answer what is no review with what is wrong with it', async () => {
    const ask = (method: string, path: string, body: string) => asked(webhooks, tls, method, path, body)
    const review = JSON.stringify({ kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request: { uid: 'a' } })
    expect(await ask('POST', '/validate/x', '{')).toMatchObject({ code: 400 })
    expect(await ask('POST', '/validate/unknown', review)).toMatchObject({ code: 404 })
    expect(await ask('GET', '/validate/x', '')).toMatchObject({ code: 405 })
    expect((await ask('POST', '/validate/unknown', review)).text).toContain('no rule answers')
  })
})
