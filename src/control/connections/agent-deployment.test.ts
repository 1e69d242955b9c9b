import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ApiServer, listenApi } from '#apiserver'
import { collectors } from '#collect'
import { createKubeClient, type KubeClient, KubeError, type KubeObject, pods, type Resource, whole } from '#kube'
import { type ClusterName, parseClusterName } from '#model'
import { AgentCredentials } from './agent-credentials.ts'
import { AGENT_TOKEN_TTL_MS, deployAgent, removeAgent, updateRole } from './agent-deployment.ts'
import { type AgentSettings, agentKeys, agentResources } from './agent-objects.ts'
import { agentSigns, troubleOf } from './agent-trouble.ts'
import { apis, declare, HUB_NAMESPACE, type TestApi } from './testing/hubs.ts'

const signal = new AbortController().signal
const storageClasses: Resource = {
  ...{ group: 'storage.k8s.io', version: 'v1', plural: 'storageclasses', kind: 'StorageClass' },
  namespaced: false,
}
interface PodHolder {
  readonly template: { readonly spec: { readonly volumes: readonly { readonly name: string }[] } }
}
type Step = keyof typeof agentResources
const steps = Object.keys(agentResources) as Step[]

/** As a manager of the original makes it. */
const originalDeployment = (): KubeObject => {
  const labels = {
    'app.kubernetes.io/name': 'clusterpulse-collector',
    'app.kubernetes.io/component': 'collector',
    'app.kubernetes.io/part-of': 'clusterpulse',
  }
  const env = [
    { name: 'CLUSTER_NAME', value: 'west' },
    { name: 'COLLECTOR_TOKEN', valueFrom: { secretKeyRef: { name: 'clusterpulse-collector-token', key: 'token' } } },
  ]
  const containers = [{ name: 'collector', image: 'registry.example/clusterpulse/collector:v0.9', env }]
  return {
    metadata: { ...agentKeys.deployment, labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: { 'app.kubernetes.io/name': 'clusterpulse-collector' } },
      template: { metadata: { labels }, spec: { serviceAccountName: 'clusterpulse-collector', containers } },
    },
  }
}

// The hub is its own member here: one server holds both sides.
for (const { title, skip, open } of apis) {
  describe.skipIf(skip)(`an agent's deployment on ${title}`, () => {
    let api: TestApi
    let kube: KubeClient
    let credentials: AgentCredentials
    let cluster: ClusterName
    let n = 0
    beforeAll(async () => {
      api = await open()
      kube = api.kube
      credentials = new AgentCredentials({ hub: kube, namespace: HUB_NAMESPACE })
      await credentials.start()
    })
    afterAll(async () => {
      await credentials?.[Symbol.asyncDispose]()
      await api?.[Symbol.asyncDispose]()
    })
    beforeEach(async () => {
      cluster = parseClusterName(`c${n++}`)
      await declare(kube, cluster)
    })
    afterEach(async () => {
      // A real server without its controller-manager never empties a namespace: it stays, and the rest goes.
      for (const step of steps.filter((name) => name !== 'namespace')) {
        if (await get(step)) await kube.delete(agentResources[step], agentKeys[step])
      }
    })

    const get = (step: Step) => kube.get(agentResources[step], agentKeys[step])
    const settings = (over: Partial<AgentSettings> = {}): AgentSettings => ({
      cluster,
      image: 'registry/agent:1',
      address: 'hub.example.com:9443',
      intervalMs: 30_000,
      operatorScanIntervalMs: 300_000,
      tls: true,
      caPem: 'CA 1\n',
      ...over,
    })
    const deploy = (over: Partial<AgentSettings> = {}, now = Date.now()) =>
      deployAgent({ kube, cluster, settings: settings(over), collectors, credentials, now, signal })
    const versions = async () =>
      Object.fromEntries(
        await Promise.all(steps.map(async (step) => [step, (await get(step))?.metadata.resourceVersion] as const)),
      )
    const shownToken = async () => {
      const { token = '' } = ((await get('secret'))?.data ?? {}) as { token?: string }
      return Buffer.from(token, 'base64').toString()
    }

    it('makes everything once, with a credential the hub knows; a repeat changes nothing at all', async () => {
      expect(await deploy()).toEqual({ kind: 'deployed', image: 'registry/agent:1', roleGaps: [], changed: true })
      const before = await versions()
      const absent = Object.keys(before).filter((step) => before[step] === undefined)
      expect(absent).toEqual([
        ...((await kube.serves(agentResources.networkpolicy)) ? [] : ['networkpolicy']),
        'persistentvolumeclaim',
      ])
      const token = await shownToken()
      expect(credentials.verify({ token, address: 'x' })).toMatchObject({ peer: { cluster, method: 'token' } })
      expect(await deploy()).toEqual({ kind: 'deployed', image: 'registry/agent:1', roleGaps: [], changed: false })
      expect(await deploy()).toMatchObject({ changed: false })
      expect(await versions()).toEqual(before)
      expect(await shownToken()).toBe(token)
    })

    const reads = [
      { group: 'g.io', version: 'v1', kind: 'Widget', plural: 'widgets', isPluralDeclared: false, watch: true },
    ]
    const rulesOf = async () => JSON.stringify((await get('clusterrole'))?.rules)

    it('lets the agent read what MetricSources need, and renews its role alone when they change', async () => {
      await deploy()
      expect(await rulesOf()).not.toContain('widgets')
      const before = await versions()
      expect(await updateRole({ kube, cluster, settings: settings(), collectors, reads, signal })).toEqual([])
      expect(await rulesOf()).toContain('widgets')
      const { clusterrole: _, ...others } = before
      expect(await versions()).toMatchObject(others)
      const end = await deployAgent({
        kube,
        cluster,
        settings: settings(),
        collectors,
        reads,
        credentials,
        now: Date.now(),
        signal,
      })
      expect(end).toMatchObject({ kind: 'deployed', changed: false })
      expect(await rulesOf()).toContain('widgets')
    })

    it('does not touch the role of an agent that serves another connection', async () => {
      await deploy()
      const other = parseClusterName('another')
      await updateRole({ kube, cluster: other, settings: settings(), collectors, reads, signal })
      expect(await rulesOf()).not.toContain('widgets')
    })

    it('goes on with the role of the collectors where the hub may not give more, and says so', async () => {
      const patch: KubeClient['patch'] = async (resource, key, body, how) => {
        if (JSON.stringify(body).includes('widgets')) throw new KubeError('forbidden', 'that would be more than it has')
        return kube.patch(resource, key, body, how)
      }
      const meek = new Proxy(kube, {
        get(target, name) {
          if (name === 'patch') return patch
          const value: unknown = Reflect.get(target, name)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
      const end = await deployAgent({
        kube: meek,
        cluster,
        settings: settings(),
        collectors,
        reads,
        credentials,
        now: Date.now(),
        signal,
      })
      expect(end).toMatchObject({ kind: 'deployed', roleGaps: [{ group: 'g.io', kind: 'Widget' }] })
      expect(end.kind === 'deployed' && end.roleGaps[0]?.message).toMatch(
        /that would be more than it has; let its account/,
      )
      expect(await rulesOf()).toContain('nodes')
      expect(await get('deployment')).toBeDefined()
    })

    it('follows another version, another address and another CA', async () => {
      await deploy()
      await deploy({ image: 'registry/agent:2', address: 'other:9443', caPem: 'CA 2\n' })
      const text = JSON.stringify([await get('deployment'), await get('configmap'), await get('networkpolicy')])
      expect(text).toContain('registry/agent:2')
      expect(text).toContain('other:9443')
      expect(text).toContain('CA 2')
      expect(text).not.toMatch(/agent:1"|hub\.example|CA 1/)
      const { caPem: _, ...system } = settings()
      await deployAgent({ kube, cluster, settings: system, collectors, credentials, now: Date.now(), signal })
      expect(await get('configmap')).toBeUndefined()
      expect(JSON.stringify(await get('deployment'))).not.toContain('ingester-ca')
    })

    it('repairs what others changed or deleted, and leaves alone what is not its own', async () => {
      await deploy()
      const role = { rules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }] }
      await kube.patch(agentResources.clusterrole, agentKeys.clusterrole, role, { kind: 'merge' })
      const patch = { metadata: { annotations: { team: 'a' } }, spec: { replicas: 0 } }
      await kube.patch(agentResources.deployment, agentKeys.deployment, patch, { kind: 'merge' })
      await kube.delete(agentResources.configmap, agentKeys.configmap)
      await deploy()
      expect(JSON.stringify((await get('clusterrole'))?.rules)).not.toContain('*')
      expect(await get('deployment')).toMatchObject({ metadata: { annotations: { team: 'a' } }, spec: { replicas: 1 } })
      expect(await get('configmap')).toBeDefined()
    })

    it('makes a binding anew that binds another role, which cannot be changed in place', async () => {
      await deploy()
      await kube.delete(agentResources.clusterrolebinding, agentKeys.clusterrolebinding)
      await kube.create(agentResources.clusterrolebinding, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: agentKeys.clusterrolebinding.name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ kind: 'ServiceAccount', name: 'clusterpulse-collector', namespace: 'clusterpulse-system' }],
      })
      expect(await deploy()).toMatchObject({ kind: 'deployed' })
      expect((await get('clusterrolebinding'))?.roleRef).toMatchObject({ name: 'clusterpulse-collector' })
    })

    it('puts a new token there where the one there is unknown, revoked, or near its end; the old one stays good meanwhile', async () => {
      await deploy()
      const first = await shownToken()
      await kube.patch(agentResources.secret, agentKeys.secret, { data: { token: 'cnViYmlzaA==' } }, { kind: 'merge' })
      expect(await deploy()).toMatchObject({ changed: true })
      const second = await shownToken()
      expect(second).not.toBe(first)
      await credentials.revoke(cluster)
      await deploy()
      const third = await shownToken()
      expect(third).not.toBe(second)
      await deploy({}, Date.now() + AGENT_TOKEN_TTL_MS * 0.6)
      expect(await shownToken()).toBe(third)
      await deploy({}, Date.now() + AGENT_TOKEN_TTL_MS * 0.7)
      const fourth = await shownToken()
      expect(fourth).not.toBe(third)
      for (const token of [third, fourth]) expect(credentials.verify({ token, address: 'x' })).toHaveProperty('peer')
    })

    it('touches no agent of another connection', async () => {
      await deploy()
      const before = await versions()
      const other = parseClusterName(`other-${cluster}`)
      await declare(kube, other)
      const end = await deployAgent({
        kube,
        cluster: other,
        settings: settings({ cluster: other }),
        collectors,
        credentials,
        now: Date.now(),
        signal,
      })
      expect(end).toMatchObject({
        kind: 'failed',
        message: expect.stringContaining(`agent of the connection ${cluster}`) as string,
      })
      expect(await removeAgent(kube, other, signal)).toEqual([])
      expect(await versions()).toEqual(before)
    })

    const aClass = (name: string, isDefault: boolean) =>
      kube.create(storageClasses, {
        metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': String(isDefault) } },
        provisioner: 'example.com/none',
      })
    const volumeOf = async () =>
      ((await get('deployment'))?.spec as PodHolder | undefined)?.template.spec.volumes.find(
        ({ name }) => name === 'buffer',
      )

    it('leaves a collector of the original as it is where originals may speak, until somebody deletes its Deployment', async () => {
      const keeping = () =>
        deployAgent({
          ...{ kube, cluster, settings: settings(), collectors, credentials, now: Date.now(), signal },
          keepsOriginals: true,
        })
      if (!(await get('namespace')))
        await kube.create(agentResources.namespace, { metadata: { name: 'clusterpulse-system' } })
      await kube.create(agentResources.secret, {
        metadata: { ...agentKeys.secret },
        stringData: { token: 'of the connection' },
      } as KubeObject)
      await kube.create(agentResources.deployment, originalDeployment())
      const before = await versions()
      expect(await keeping()).toEqual({ kind: 'kept' })
      expect(await versions()).toEqual(before)
      await kube.delete(agentResources.deployment, agentKeys.deployment)
      expect(await keeping()).toMatchObject({ kind: 'deployed', changed: true })
      // It is ours now, whatever somebody takes off it.
      const bare = { metadata: { annotations: null } }
      await kube.patch(agentResources.deployment, agentKeys.deployment, bare as never, { kind: 'merge' })
      expect(await keeping()).toMatchObject({ kind: 'deployed' })
    })

    it('replaces a collector of the original where originals may not speak', async () => {
      await kube.create(agentResources.deployment, originalDeployment())
      expect(await deploy()).toMatchObject({ kind: 'deployed' })
      expect(JSON.stringify(await get('deployment'))).toContain('registry/agent:1')
    })

    it('claims a volume where the member can provide one, else says that the buffer ends with its pod', async () => {
      const bufferVolume = { size: '2Gi' }
      const first = await deploy({ bufferVolume })
      if (!(await kube.serves(agentResources.persistentvolumeclaim))) {
        expect(first).toMatchObject({ kind: 'deployed', notDurable: { reason: 'NoClaims' } })
        return
      }
      expect(first).toMatchObject({ kind: 'deployed', notDurable: { reason: 'NoDefaultStorageClass' } })
      expect(await volumeOf()).toMatchObject({ emptyDir: {} })
      await aClass('slow', false)
      const second = await deploy({ bufferVolume })
      expect(second.kind === 'deployed' && second.notDurable?.message).toMatch(
        /no default StorageClass; it has slow: name one with AGENT_BUFFER_STORAGE_CLASS/,
      )
      // One that is named needs no default.
      expect(await deploy({ bufferVolume: { size: '2Gi', storageClass: 'slow' } })).not.toHaveProperty('notDurable')
      expect((await get('persistentvolumeclaim'))?.spec).toMatchObject({
        storageClassName: 'slow',
        resources: { requests: { storage: '2Gi' } },
      })
      expect(await volumeOf()).toMatchObject({ persistentVolumeClaim: { claimName: 'clusterpulse-collector' } })
      // Most of a claim cannot be changed: the one that is there serves on.
      expect(await deploy({ bufferVolume: { size: '1Gi', storageClass: 'other' } })).not.toHaveProperty('notDurable')
      expect(await deploy()).toMatchObject({ kind: 'deployed', changed: true })
      expect(await volumeOf()).toMatchObject({ emptyDir: {} })
      const claim = await get('persistentvolumeclaim')
      expect(claim === undefined || claim.metadata.deletionTimestamp !== undefined).toBe(true)
      await kube.delete(storageClasses, { name: 'slow' })
    })

    it('fixes the group of the buffer but where the member is an OpenShift, which assigns its own', async () => {
      if (!(await kube.serves(agentResources.persistentvolumeclaim))) return
      const bufferVolume = { size: '2Gi', storageClass: 'any' }
      const contextOf = async () => {
        const { template } = (await kube.get(agentResources.deployment, agentKeys.deployment))!.spec as {
          template: { spec: { securityContext: object; containers: readonly { securityContext: object }[] } }
        }
        return [template.spec.securityContext, template.spec.containers[0]?.securityContext] as const
      }
      await deploy({ bufferVolume })
      expect((await contextOf())[0]).toMatchObject({ runAsNonRoot: true, fsGroup: 65532 })
      // The same API, which says that it knows SecurityContextConstraints.
      const openShift = new Proxy(kube, {
        get(target, name) {
          if (name === 'serves')
            return async (resource: Resource, asked?: AbortSignal) =>
              resource.kind === 'SecurityContextConstraints' || target.serves(resource, asked)
          const value: unknown = Reflect.get(target, name)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
      const wish = { settings: settings({ bufferVolume }), collectors, credentials, now: Date.now(), signal }
      expect(await deployAgent({ kube: openShift, cluster, ...wish })).toMatchObject({ kind: 'deployed' })
      const [pod, container] = await contextOf()
      expect(pod).toMatchObject({ runAsNonRoot: true })
      for (const fixed of ['fsGroup', 'runAsUser', 'runAsGroup', 'supplementalGroups']) {
        expect(pod).not.toHaveProperty(fixed)
        expect(container).not.toHaveProperty(fixed)
      }
      expect(await volumeOf()).toMatchObject({ persistentVolumeClaim: {} })
    })

    it('goes on without a claim that the member refuses, and names why', async () => {
      if (!(await kube.serves(agentResources.persistentvolumeclaim))) return
      await aClass('fast', true)
      const apiMessage = 'persistentvolumeclaims "clusterpulse-collector" is forbidden: exceeded quota: none-left'
      const patch: KubeClient['patch'] = async (resource, key, body, how) => {
        if (resource.plural === 'persistentvolumeclaims') throw new KubeError('forbidden', 'no', { apiMessage })
        return kube.patch(resource, key, body, how)
      }
      const bound = kube.get.bind(kube)
      const refusing = Object.create(kube, { patch: { value: patch }, get: { value: bound } }) as KubeClient
      const serves = kube.serves.bind(kube)
      const listAll = kube.listAll.bind(kube)
      const find = kube.find.bind(kube)
      Object.assign(refusing, { serves, listAll, find })
      const options = {
        cluster,
        settings: settings({ bufferVolume: { size: '2Gi' } }),
        collectors,
        credentials,
        signal,
      }
      const end = await deployAgent({ ...options, kube: refusing, now: Date.now() })
      expect(end).toMatchObject({ kind: 'deployed', notDurable: { reason: 'ClaimRefused' } })
      expect(end.kind === 'deployed' && end.notDurable?.message).toContain('exceeded quota: none-left')
      expect(await volumeOf()).toMatchObject({ emptyDir: {} })
      expect(await deploy({ bufferVolume: { size: '2Gi' } })).not.toHaveProperty('notDurable')
      expect(await volumeOf()).toMatchObject({ persistentVolumeClaim: {} })
      await kube.delete(storageClasses, { name: 'fast' })
    })

    it('shows why its pod does not start, as the member has it', async () => {
      await deploy()
      expect(troubleOf(await agentSigns(kube, signal), settings().address)).toBeUndefined()
      const name = `collector-${cluster}`
      const key = { name, namespace: 'clusterpulse-system' }
      const containers = [
        {
          name: 'collector',
          image: 'registry/agent:1',
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, runAsNonRoot: true },
        },
      ]
      const spec = { containers, securityContext: { seccompProfile: { type: 'RuntimeDefault' } } }
      const labels = { 'app.kubernetes.io/name': 'clusterpulse-collector' }
      await kube.create(whole(pods), { metadata: { ...key, labels }, spec })
      const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "registry/agent:1"' }
      const status = {
        phase: 'Pending',
        containerStatuses: [
          { name: 'collector', image: 'i', imageID: '', ready: false, restartCount: 0, state: { waiting } },
        ],
      }
      await kube.patch(whole(pods), key, { status }, { kind: 'merge', subresource: 'status' })
      expect(troubleOf(await agentSigns(kube, signal), settings().address)).toMatch(
        new RegExp(`^pod ${name}: ImagePullBackOff: Back-off pulling image "registry/agent:1"; set AGENT_IMAGE`),
      )
      await kube.delete(whole(pods), key)
      const conditions = [
        { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota: small' },
      ]
      await kube.patch(
        agentResources.deployment,
        agentKeys.deployment,
        { status: { conditions } },
        {
          kind: 'merge',
          subresource: 'status',
        },
      )
      await expect
        .poll(async () => troubleOf(await agentSigns(kube, signal), settings().address), { timeout: 10_000 })
        .toBe('no pod is made: FailedCreate: exceeded quota: small')
    })

    it('goes without a trace, and going twice is nothing special', async () => {
      const volumes = await kube.serves(agentResources.persistentvolumeclaim)
      await deploy(volumes ? { bufferVolume: { size: '1Gi', storageClass: 'any' } } : {})
      expect((await get('persistentvolumeclaim')) !== undefined).toBe(volumes)
      expect(await removeAgent(kube, cluster, signal)).toEqual([])
      const left = (await Promise.all(steps.map(get))).filter((object) => object && !object.metadata.deletionTimestamp)
      expect(left).toEqual([])
      expect(await removeAgent(kube, cluster, signal)).toEqual([])
    })
  })
}

describe('an agent that cannot be deployed', () => {
  async function aMember(...groups: string[]) {
    const server = await ApiServer.open({ storage: { kind: 'memory' }, name: 'member', defaultRoles: true })
    const token = randomUUID()
    const listener = await listenApi({ tokens: [{ token, user: 'hub', groups }], mounts: new Map([['', server]]) })
    const credentials = { kind: 'token' as const, token }
    const kube = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
    return {
      kube,
      server,
      close: () => listener[Symbol.asyncDispose](),
      async [Symbol.asyncDispose]() {
        await kube[Symbol.asyncDispose]()
        await listener[Symbol.asyncDispose]()
        await server[Symbol.asyncDispose]()
      },
    }
  }
  const cluster = parseClusterName('west')
  const settings = { cluster, image: 'i', address: 'hub:1', intervalMs: 1, operatorScanIntervalMs: 1, tls: false }
  const issued: string[] = []
  const credentials = {
    check: () => undefined,
    issue: () => {
      issued.push('one')
      return Promise.resolve({ cluster, token: 'cp', id: 'id', expiresAt: null })
    },
  }
  const deploy = (kube: KubeClient) => deployAgent({ kube, cluster, settings, collectors, credentials, now: 0, signal })

  it('names the first step that failed, the missing right and the next step, and issues no token in vain', async () => {
    await using member = await aMember()
    await member.server.objects.put({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'hub' },
      roleRef: { kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', name: 'hub' }],
    })
    const end = await deploy(member.kube)
    expect(end).toMatchObject({ kind: 'failed', code: 'kube_forbidden' })
    expect(end.kind === 'failed' && end.message).toMatch(
      /^secret: .*; grant it, or run "clusterpulse connect west --bearer-token -o manifest"/,
    )
    expect(issued).toEqual([])
  })

  it('takes the missing right from what a Kubernetes API says of it', async () => {
    const apiMessage =
      'secrets "clusterpulse-collector-token" is forbidden: User "hub" cannot patch resource "deployments" in API group "apps" in the namespace "clusterpulse-system"'
    const kube = {
      get: () => Promise.reject(new KubeError('forbidden', 'no', { apiMessage })),
    } as unknown as KubeClient
    expect(await deploy(kube)).toEqual({
      kind: 'failed',
      code: 'kube_forbidden',
      message:
        'namespace: the account may not patch deployments.apps; grant it, or run "clusterpulse connect west --bearer-token -o manifest" and apply what it prints on the member',
    })
  })

  it('says that nobody answers', async () => {
    const member = await aMember('system:masters')
    await member.close()
    expect(await deploy(member.kube)).toMatchObject({
      kind: 'failed',
      message: expect.stringMatching(/^namespace: /) as string,
    })
    const left = await removeAgent(member.kube, cluster, signal)
    expect(left).toHaveLength(1)
    await member[Symbol.asyncDispose]()
  })

  it('uses a namespace that was there before, and leaves it as it is and where it is', async () => {
    await using member = await aMember('system:masters')
    await member.kube.create(agentResources.namespace, {
      metadata: { name: 'clusterpulse-system', labels: { mine: 'yes' } },
    })
    const before = (await member.kube.get(agentResources.namespace, agentKeys.namespace)) as KubeObject
    expect(await deploy(member.kube)).toMatchObject({ kind: 'deployed' })
    await removeAgent(member.kube, cluster, signal)
    const after = (await member.kube.get(agentResources.namespace, agentKeys.namespace)) as KubeObject
    expect(after.metadata).toEqual(before.metadata)
  })
})
