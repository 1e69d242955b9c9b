import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { generateServingCertificate } from '#apiserver'
import { collectors } from '#collect'
import type { AgentRights } from '#model'
import { isNearEnd } from './agent-deployment.ts'
import { type AgentSettings, agentObjects, hostAndPort, imageOf } from './agent-objects.ts'
import { caFingerprints, joinCommand, joinManifest } from './join.ts'
import { joinContainer } from './join-container.ts'

const settings: AgentSettings = {
  cluster: 'west',
  image: 'registry/agent:1',
  address: 'hub.example.com:9443',
  intervalMs: 30_000,
  operatorScanIntervalMs: 300_000,
  tls: true,
  caPem: 'CA',
  serverName: 'ingester.fleet.svc',
  endpoint: 'https://api.west:7443',
}
const credential = { token: 'cp_west_x', id: 'abcd1234' }
const objectsOf = (over: Partial<AgentSettings> = {}) => agentObjects({ ...settings, ...over }, credential, collectors)
interface Container {
  readonly env: readonly { name: string; value?: string }[]
  readonly securityContext: object
  readonly volumeMounts: readonly { name: string }[]
}
interface Pod {
  readonly metadata: { annotations: Record<string, string>; labels: Record<string, string> }
  readonly spec: { containers: readonly [Container]; volumes: readonly object[]; securityContext: object }
}
const find = (step: string, over: Partial<AgentSettings> = {}) => {
  const found = objectsOf(over).find((one) => one.step === step)?.object
  if (!found) throw new Error(`no ${step}`)
  return found
}
const podOf = (over: Partial<AgentSettings> = {}) => (find('deployment', over).spec as { template: Pod }).template

describe('the objects of an agent', () => {
  it('lets the agent out to kubelets only where it asks them at their own ports', () => {
    const portsOf = (over: Parameters<typeof find>[1]) => JSON.stringify(find('networkpolicy', over))
    expect(portsOf({})).not.toContain('10250')
    expect(portsOf({ asksKubelets: true })).toContain('"port":10250')
  })

  it('come in the documented order, with a map for the CA only where there is one', () => {
    expect(objectsOf().map(({ step }) => step)).toEqual([
      'namespace',
      'serviceaccount',
      'clusterrole',
      'clusterrolebinding',
      'secret',
      'configmap',
      'networkpolicy',
      'deployment',
    ])
    expect(objectsOf({ tls: false }).map(({ step }) => step)).not.toContain('configmap')
    const { caPem: _, ...system } = settings
    expect(agentObjects(system, credential, collectors).map(({ step }) => step)).not.toContain('configmap')
  })

  it('have the documented names and labels', () => {
    const { metadata, spec } = find('deployment')
    expect(metadata).toMatchObject({
      name: 'clusterpulse-collector',
      namespace: 'clusterpulse-system',
      labels: {
        'app.kubernetes.io/name': 'clusterpulse-collector',
        'app.kubernetes.io/component': 'collector',
        'app.kubernetes.io/part-of': 'clusterpulse',
      },
    })
    expect(spec).toMatchObject({ selector: { matchLabels: { 'app.kubernetes.io/name': 'clusterpulse-collector' } } })
    expect(find('secret')).toMatchObject({
      metadata: { name: 'clusterpulse-collector-token' },
      data: { token: 'Y3Bfd2VzdF94' },
    })
    expect(find('configmap')).toMatchObject({ metadata: { name: 'ingester-ca' }, data: { 'service-ca.crt': 'CA' } })
  })

  it('give the agent its environment in the documented order, then ours', () => {
    expect(podOf().spec.containers[0].env.map(({ name }) => name)).toEqual([
      'CLUSTER_NAME',
      'INGESTER_ADDRESS',
      'COLLECTOR_TOKEN',
      'OPERATOR_SCAN_INTERVAL',
      'INGESTER_TLS_ENABLED',
      'INGESTER_TLS_SERVER_NAME',
      'INGESTER_TLS_CA',
      'COLLECT_INTERVAL',
      'BUFFER_DIR',
    ])
    const plain = podOf({ tls: false }).spec.containers[0].env
    expect(plain.map(({ name }) => name).filter((name) => name.includes('TLS'))).toEqual([])
    expect(plain.find(({ name }) => name === 'COLLECT_INTERVAL')?.value).toBe('30')
  })

  it('let the agent read what its collectors read: no wildcard, no Secret, no verb that writes', () => {
    const { rules } = find('clusterrole') as unknown as {
      rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[]
    }
    expect(rules.length).toBeGreaterThan(3)
    for (const { apiGroups, resources, verbs } of rules) {
      expect([...apiGroups, ...resources, ...verbs]).not.toContain('*')
      expect(resources).not.toContain('secrets')
      expect(verbs.filter((verb) => !['get', 'list', 'watch'].includes(verb))).toEqual([])
    }
    const nodesOnly = agentObjects(
      settings,
      credential,
      collectors.filter(({ name }) => name === 'nodes'),
    )
    expect(JSON.stringify(nodesOnly.find(({ step }) => step === 'clusterrole')?.object)).not.toContain('deployments')
  })

  it('run the agent without any privilege', () => {
    const { securityContext, containers } = podOf().spec
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect(containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  it('let it speak to names, the API and the hub only, and be asked by probes only', () => {
    const { spec } = find('networkpolicy', { address: '192.0.2.7:9443' }) as unknown as {
      spec: { ingress: unknown; egress: unknown[]; policyTypes: string[] }
    }
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress'])
    expect(spec.ingress).toEqual([{ ports: [{ protocol: 'TCP', port: 8081 }] }])
    expect(spec.egress.slice(1)).toEqual([
      { ports: [443, 6443, 7443].map((port) => ({ protocol: 'TCP', port })) },
      { ports: [{ protocol: 'TCP', port: 9443 }], to: [{ ipBlock: { cidr: '192.0.2.7/32' } }] },
    ])
  })

  it('start the agent anew when its token or its CA changes, and for nothing else', () => {
    const annotations = (over: Partial<AgentSettings>, id = credential.id) => {
      const objects = agentObjects({ ...settings, ...over }, { token: 'cp_west_y', id }, collectors)
      const deployment = objects.find(({ step }) => step === 'deployment')?.object
      return (deployment?.spec as { template: Pod } | undefined)?.template.metadata.annotations
    }
    expect(annotations({})).toEqual(podOf().metadata.annotations)
    expect(annotations({}, 'other')).not.toEqual(podOf().metadata.annotations)
    expect(annotations({ caPem: 'other' })).not.toEqual(podOf().metadata.annotations)
  })

  it('are pulled with the Secret that is named', () => {
    const secrets = { imagePullSecrets: [{ name: 'registry-login' }] }
    expect(podOf({ imagePullSecret: 'registry-login' }).spec).toMatchObject(secrets)
    expect(podOf().spec).not.toHaveProperty('imagePullSecrets')
  })

  it('keep the buffer on a volume where one is asked for', () => {
    expect(podOf().spec.volumes[0]).toEqual({ name: 'buffer', emptyDir: { sizeLimit: '1200Mi' } })
    const over = { bufferVolume: { size: '5Gi', storageClass: 'fast', fsGroup: 65532 } }
    expect(podOf(over).spec.volumes[0]).toEqual({
      name: 'buffer',
      persistentVolumeClaim: { claimName: 'clusterpulse-collector' },
    })
    expect(podOf(over).spec.securityContext).toMatchObject({ fsGroup: 65532 })
    expect(find('persistentvolumeclaim', over).spec).toMatchObject({
      storageClassName: 'fast',
      resources: { requests: { storage: '5Gi' } },
    })
  })
})

it.each([
  ['registry/agent', '1.2.3', undefined, 'registry/agent:1.2.3'],
  // A tag holds no +, and the image of a release is not named after its commit.
  ['registry/agent', '0.1.0+0123abcd', undefined, 'registry/agent:0.1.0'],
  ['registry/agent', '', undefined, 'registry/agent:latest'],
  ['registry/agent', 'dev', undefined, 'registry/agent:latest'],
  ['registry/agent', '1.2.3', 'v9', 'registry/agent:v9'],
  ['registry/agent', '1.2.3', 'dev', 'registry/agent:latest'],
  ['registry:5000/agent', '1.2.3', undefined, 'registry:5000/agent:1.2.3'],
  ['registry:5000/agent:v1', '1.2.3', undefined, 'registry:5000/agent:v1'],
  ['registry:5000/agent:v1', '1.2.3', 'v9', 'registry:5000/agent:v9'],
  ['agent@sha256:00', '1.2.3', undefined, 'agent@sha256:00'],
  ['agent@sha256:00', '1.2.3', 'v9', 'agent:v9'],
])('takes the image %s at hub version %j with collectorVersion %s as %s', (image, version, wanted, result) =>
  expect(imageOf({ image, version }, wanted)).toBe(result),
)

it.each([
  ['hub:9443', 'hub', 9443],
  ['hub', 'hub', 443],
  ['10.0.0.1:9443', '10.0.0.1', 9443],
  ['[fd00::1]:9443', 'fd00::1', 9443],
  ['dns:///hub.example.com:9443', 'hub.example.com', 9443],
  ['ipv4:10.0.0.1:9443', '10.0.0.1', 9443],
  ['https://hub:9443', 'hub', 9443],
])('reads the address %s as %s, port %d', (address, host, port) => expect(hostAndPort(address)).toEqual({ host, port }))

it.each([
  [100, 400, 199, false],
  [100, 400, 300, false],
  [100, 400, 301, true],
  [100, null, 1e15, false],
])('made at %d, good until %s: near its end at %d: %s', (createdAt, expiresAt, now, result) =>
  expect(isNearEnd({ id: '', sha256: '', createdAt, expiresAt }, now)).toBe(result),
)

interface Manifested {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly rules?: readonly { readonly resources: readonly string[]; readonly verbs: readonly string[] }[]
  readonly roleRef?: { readonly kind: string; readonly name: string }
  readonly spec?: {
    readonly template?: {
      readonly spec: {
        readonly containers: readonly {
          readonly args: readonly string[]
          readonly env: readonly { readonly name: string; readonly value?: string }[]
        }[]
      }
    }
  }
}

describe('joining by hand', () => {
  const joining = { cluster: 'west', token: 'cp_west_x', address: 'hub:9443', tls: true, intervalMs: 30_000 }

  it('prints the same objects the hub applies, as YAML that reads back', async () => {
    const { ca: caPem } = await generateServingCertificate({ hosts: ['hub'] })
    const text = joinManifest({ ...joining, caPem, image: 'agent:1' })
    const documents = parseAllDocuments(text).map((document) => document.toJSON() as { kind: string })
    expect(documents.map(({ kind }) => kind)).toEqual(objectsOf().map(({ object }) => object.kind))
    expect(documents.find(({ kind }) => kind === 'ConfigMap')).toMatchObject({ data: { 'service-ca.crt': caPem } })
    expect(text).toContain(`SHA-256 ${caFingerprints(caPem)[0]}`)
    expect(text.split('\n')[0]).toBe('# The agent of west, which pushes to hub:9443.')
  })

  const member = { ...joining, token: 'cpj1_x', address: '10.0.0.1:9443,hub:9444' }
  const manifestOf = (rights: AgentRights) =>
    parseAllDocuments(joinManifest({ ...member, joins: { rights }, image: 'agent:1' })).map(
      (document) => document.toJSON() as Manifested,
    )
  const rulesOf = (objects: readonly Manifested[], kind: string) =>
    objects.find((one) => one.kind === kind && one.metadata.name === 'clusterpulse-collector')?.rules ?? []

  it('prints an agent that joins: its key stays in one Secret of its namespace, to which alone it has a right', () => {
    const objects = manifestOf({ kind: 'observe' })
    const secrets = objects.filter(({ kind }) => kind === 'Secret')
    expect(secrets.map(({ metadata }) => metadata.name)).toEqual([
      'clusterpulse-agent-identity',
      'clusterpulse-collector-token',
    ])
    // Applied again it must not take the identity away.
    expect(secrets[0]).not.toHaveProperty('data')
    expect(rulesOf(objects, 'Role')).toEqual([
      {
        apiGroups: [''],
        resources: ['secrets'],
        resourceNames: ['clusterpulse-agent-identity'],
        verbs: ['get', 'patch'],
      },
    ])
    const read = rulesOf(objects, 'ClusterRole')
    expect(read.flatMap(({ resources }) => resources)).toContain('clusterclaims')
    expect(read.flatMap(({ resources }) => resources)).not.toContain('secrets')
    expect(new Set(read.flatMap(({ verbs }) => verbs))).toEqual(new Set(['get', 'list', 'watch']))
    const [container] = objects.find(({ kind }) => kind === 'Deployment')?.spec?.template?.spec.containers ?? []
    expect(container?.args).toEqual(['join'])
    expect(container?.env.map(({ name, value }) => [name, value])).toEqual([
      ['JOIN_TOKEN', undefined],
      ['IDENTITY_SECRET', 'clusterpulse-system/clusterpulse-agent-identity'],
      ['AGENT_RIGHTS', 'observe'],
      ['BUFFER_DIR', '/data'],
    ])
    expect(JSON.stringify(objects.find(({ kind }) => kind === 'NetworkPolicy'))).toMatch(/10\.0\.0\.1\/32.*9444/)
  })

  it.each([
    [{ kind: 'full' }, ['ClusterRoleBinding ClusterRole/cluster-admin']],
    [
      { kind: 'namespaced', namespaces: ['shop', 'till'] },
      ['RoleBinding ClusterRole/admin in shop', 'RoleBinding ClusterRole/admin in till'],
    ],
  ] as const satisfies readonly (readonly [AgentRights, readonly string[]])[])(
    'gives an account beside the agent the rights that were chosen, as which it may act: %j',
    (rights, expected) => {
      const objects = manifestOf(rights)
      const given = objects.flatMap(({ kind, metadata, roleRef }) =>
        roleRef && metadata.name === 'clusterpulse-executor'
          ? [`${kind} ${roleRef.kind}/${roleRef.name}${metadata.namespace ? ` in ${metadata.namespace}` : ''}`]
          : [],
      )
      expect(given).toEqual(expected)
      expect(rulesOf(objects, 'Role').at(-1)).toEqual({
        ...{ apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate'] },
        resourceNames: ['clusterpulse-executor'],
      })
      // What it reads by itself stays the same.
      expect(rulesOf(objects, 'ClusterRole')).toEqual(rulesOf(manifestOf({ kind: 'observe' }), 'ClusterRole'))
    },
  )

  it('holds no namespace but its own, so that what takes it away takes nothing of others, and says how that is done', () => {
    const rights = { kind: 'namespaced', namespaces: ['shop', 'till'] } as const
    const namespaces = manifestOf(rights).filter(({ kind }) => kind === 'Namespace')
    expect(namespaces.map(({ metadata }) => metadata.name)).toEqual(['clusterpulse-system'])
    const text = joinManifest({ ...member, joins: { rights }, image: 'x:1' })
    expect(text).toMatch(/^# It makes no namespace: shop, till must be there\.$/m)
    expect(text).toMatch(/^# {3}kubectl delete namespace clusterpulse-system$/m)
    // What is found by that label is all there is outside of its namespace.
    for (const { kind, metadata } of manifestOf(rights))
      if (kind !== 'Namespace' && metadata.namespace !== 'clusterpulse-system')
        expect(metadata).toMatchObject({ labels: { 'app.kubernetes.io/name': 'clusterpulse-collector' } })
  })

  it('prints the command to join with its token alone, and the rights where they are more than to read', () => {
    const command = (rights: AgentRights) => joinCommand({ ...member, joins: { rights } })
    expect(command({ kind: 'observe' })).toBe(' npx clusterpulse join cpj1_x')
    expect(command({ kind: 'full' })).toBe(' npx clusterpulse join cpj1_x --rights full')
    const container = joinContainer({ ...member, joins: { rights: { kind: 'full' } }, image: 'x:1', engine: 'docker' })
    expect(container).toMatch(/ -e JOIN_TOKEN=cpj1_x -e AGENT_RIGHTS=full .* x:1 join$/)
    expect(container).not.toMatch(/COLLECTOR_TOKEN|CLUSTER_NAME/)
  })

  it('says that nothing is encrypted where it is not', () =>
    expect(joinManifest({ ...joining, tls: false, image: 'agent:1' })).toContain('without encryption'))

  it('prints one line for a shell, whatever the values hold', () => {
    const text = joinCommand({ ...joining, serverName: "a'b $(x)", caPem: 'A\nB\n' })
    expect(text).not.toContain('\n')
    expect(text).toContain(`INGESTER_TLS_SERVER_NAME='a'\\''b $(x)'`)
    expect(text).toMatch(
      /^ echo QQpCCg== \| base64 -d > clusterpulse-west-ca\.pem && CLUSTER_NAME=west INGESTER_ADDRESS=hub:9443 COLLECTOR_TOKEN=cp_west_x /,
    )
    expect(text).toMatch(/INGESTER_TLS_CA=clusterpulse-west-ca\.pem COLLECT_INTERVAL=30 npx clusterpulse agent$/)
    const pinned = joinCommand({ ...joining, caPem: 'A\nB\n', caFingerprint: 'ab12' })
    expect(pinned).toMatch(/^ CLUSTER_NAME=west .* INGESTER_CA_FINGERPRINT=ab12 npx clusterpulse agent$/)
  })

  /** What a real shell makes of it. */
  const words = (command: string, uid = 1000) => {
    const engine = 'docker() { printf "%s\\n" "$@"; }; podman() { docker "$@"; }; cd "$(mktemp -d)" || exit 1; '
    const run = spawnSync('sh', ['-c', `${engine}id() { echo ${uid}; }; ${command}`], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: '/home/me dear', KUBECONFIG: '' },
    })
    expect(run.stderr).toBe('')
    return run.stdout.trim().split('\n')
  }

  it('prints one line that runs the image, with a buffer that outlives the container, as a shell takes it', () => {
    const container = { ...joining, image: 'registry/x:1', engine: 'docker' as const, caFingerprint: 'ab12' }
    const text = joinContainer({ ...container, serverName: "a'b $(x)" })
    expect(text).toMatch(/^ docker run -d --name clusterpulse-agent-west .* registry\/x:1 agent$/)
    const said = words(text)
    expect(said).toEqual(expect.arrayContaining(["INGESTER_TLS_SERVER_NAME=a'b $(x)", 'COLLECTOR_TOKEN=cp_west_x']))
    expect(said).toEqual(expect.arrayContaining(['clusterpulse-agent-west:/data', 'INGESTER_CA_FINGERPRINT=ab12']))
    expect(said).toContain('/home/me dear/.kube/config:/kubeconfig:ro')
    expect(said).toContain('1000:1000')
    expect(said).not.toContain('keep-id')
    expect(said.join(' ')).toMatch(/--read-only .*--cap-drop ALL/)
    const { caFingerprint: _, ...unpinned } = container
    const podman = joinContainer({ ...unpinned, caPem: 'A\nB\n', engine: 'podman' })
    const own = words(podman)
    expect(own).toEqual(expect.arrayContaining(['keep-id', 'INGESTER_TLS_CA=/ingester-ca.pem']))
    expect(own.some((word) => word.endsWith('/clusterpulse-west-ca.pem:/ingester-ca.pem:ro'))).toBe(true)
    // Podman refuses keep-id to root.
    const root = words(podman, 0)
    expect([root[root.indexOf('--userns') + 1], own[own.indexOf('--userns') + 1]]).toEqual(['host', 'keep-id'])
  })
})
