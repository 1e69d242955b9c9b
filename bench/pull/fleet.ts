import protobuf from 'protobufjs'

/**
 * One generated cluster, in both encodings: nodes and pods of the size that real ones have (a pod about 4.5 KB as JSON,
 * with owner, managedFields, volumes, probes, conditions and container statuses).
 */

/** Field numbers of k8s.io/api; what JSON writes inline (a volume's source) is a message of its own here. */
const { root } = protobuf.parse(
  `
syntax = "proto2";
message Time { optional int64 seconds = 1; }
message Quantity { optional string string = 1; }
message Owner { optional string kind = 1; optional string name = 3; optional string uid = 4; optional string apiVersion = 5; optional bool controller = 6; optional bool blockOwnerDeletion = 7; }
message FieldsV1 { optional bytes Raw = 1; }
message Managed { optional string manager = 1; optional string operation = 2; optional string apiVersion = 3; optional Time time = 4; optional string fieldsType = 6; optional FieldsV1 fieldsV1 = 7; optional string subresource = 8; }
message Meta { optional string name = 1; optional string generateName = 2; optional string namespace = 3; optional string uid = 5; optional string resourceVersion = 6; optional int64 generation = 7; optional Time creationTimestamp = 8; map<string, string> labels = 11; map<string, string> annotations = 12; repeated Owner ownerReferences = 13; repeated Managed managedFields = 17; }
message LocalRef { optional string name = 1; }
message SecretSource { optional string secretName = 1; optional int32 defaultMode = 3; }
message ConfigSource { optional LocalRef localObjectReference = 1; optional int32 defaultMode = 3; }
message Source { optional SecretSource secret = 6; optional ConfigSource configMap = 19; }
message Volume { optional string name = 1; optional Source volumeSource = 2; }
message Port { optional string name = 1; optional int32 containerPort = 3; optional string protocol = 4; }
message Env { optional string name = 1; optional string value = 2; }
message Resources { map<string, Quantity> limits = 1; map<string, Quantity> requests = 2; }
message Mount { optional string name = 1; optional bool readOnly = 2; optional string mountPath = 3; }
message Container { optional string name = 1; optional string image = 2; repeated string command = 3; repeated string args = 4; repeated Port ports = 6; repeated Env env = 7; optional Resources resources = 8; repeated Mount volumeMounts = 9; optional string terminationMessagePath = 13; optional string imagePullPolicy = 14; optional string terminationMessagePolicy = 20; }
message Toleration { optional string key = 1; optional string operator = 2; optional string effect = 4; optional int64 tolerationSeconds = 5; }
message PodSpec { repeated Volume volumes = 1; repeated Container containers = 2; optional string restartPolicy = 3; optional int64 terminationGracePeriodSeconds = 4; optional string dnsPolicy = 6; optional string serviceAccountName = 8; optional string serviceAccount = 9; optional string nodeName = 10; optional string schedulerName = 19; repeated Toleration tolerations = 22; optional int32 priority = 25; optional bool enableServiceLinks = 30; optional string preemptionPolicy = 31; }
message PodCondition { optional string type = 1; optional string status = 2; optional Time lastTransitionTime = 4; optional string reason = 5; }
message Running { optional Time startedAt = 1; }
message State { optional Running running = 2; }
message ContainerStatus { optional string name = 1; optional State state = 2; optional State lastState = 3; optional bool ready = 4; optional int32 restartCount = 5; optional string image = 6; optional string imageID = 7; optional string containerID = 8; optional bool started = 9; }
message Ip { optional string ip = 1; }
message PodStatus { optional string phase = 1; repeated PodCondition conditions = 2; optional string hostIP = 5; optional string podIP = 6; optional Time startTime = 7; repeated ContainerStatus containerStatuses = 8; optional string qosClass = 9; repeated Ip podIPs = 12; }
message Pod { optional Meta metadata = 1; optional PodSpec spec = 2; optional PodStatus status = 3; }
message Taint { optional string key = 1; optional string effect = 3; }
message NodeSpec { optional string podCIDR = 1; optional string providerID = 3; repeated Taint taints = 5; repeated string podCIDRs = 7; }
message NodeCondition { optional string type = 1; optional string status = 2; optional Time lastHeartbeatTime = 3; optional Time lastTransitionTime = 4; optional string reason = 5; optional string message = 6; }
message Address { optional string type = 1; optional string address = 2; }
message Info { optional string machineID = 1; optional string systemUUID = 2; optional string bootID = 3; optional string kernelVersion = 4; optional string osImage = 5; optional string containerRuntimeVersion = 6; optional string kubeletVersion = 7; optional string operatingSystem = 9; optional string architecture = 10; }
message Image { repeated string names = 1; optional int64 sizeBytes = 2; }
message NodeStatus { map<string, Quantity> capacity = 1; map<string, Quantity> allocatable = 2; repeated NodeCondition conditions = 4; repeated Address addresses = 5; optional Info nodeInfo = 7; repeated Image images = 8; }
message Node { optional Meta metadata = 1; optional NodeSpec spec = 2; optional NodeStatus status = 3; }
message ListMeta { optional string resourceVersion = 2; optional string continue = 3; optional int64 remainingItemCount = 4; }
message PodList { optional ListMeta metadata = 1; repeated Pod items = 2; }
message NodeList { optional ListMeta metadata = 1; repeated Node items = 2; }
message TypeMeta { optional string apiVersion = 1; optional string kind = 2; }
message Unknown { optional TypeMeta typeMeta = 1; optional bytes raw = 2; }
`,
  { keepCase: true },
)

const TIMES = new Set([
  'time',
  'creationTimestamp',
  'lastHeartbeatTime',
  'lastTransitionTime',
  'startedAt',
  'startTime',
])
const QUANTITIES = new Set(['requests', 'limits', 'capacity', 'allocatable'])

function toMessage(value: unknown, key = ''): unknown {
  if (typeof value === 'string' && TIMES.has(key)) return { seconds: Date.parse(value) / 1000 }
  if (key === 'fieldsV1') return { Raw: Buffer.from(JSON.stringify(value)).toString('base64') }
  if (Array.isArray(value)) return value.map((item) => toMessage(item, key === 'volumes' ? 'volume' : ''))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  if (QUANTITIES.has(key)) return Object.fromEntries(entries.map(([name, text]) => [name, { string: text }]))
  if (key === 'volume') {
    const { name, secret, configMap } = value as { name: string; secret?: object; configMap?: { name: string } }
    const config = configMap && { localObjectReference: { name: configMap.name } }
    return { name, volumeSource: { ...(secret ? { secret } : {}), ...(config ? { configMap: config } : {}) } }
  }
  return Object.fromEntries(entries.map(([name, field]) => [name, toMessage(field, name)]))
}

export interface RenderedPage {
  readonly json: Buffer
  readonly protobuf: Buffer
}

function render(
  kind: 'Pod' | 'Node',
  items: readonly object[],
  from: number,
  total: number,
  pageSize: number,
): RenderedPage {
  const next = from + pageSize
  const more = next < total ? { continue: String(next), remainingItemCount: total - next } : {}
  const list = { kind: `${kind}List`, apiVersion: 'v1', metadata: { resourceVersion: '123456', ...more }, items }
  const type = root.lookupType(`${kind}List`)
  const raw = type
    .encode(type.fromObject(toMessage({ metadata: list.metadata, items }) as Record<string, unknown>))
    .finish()
  const typeMeta = { apiVersion: 'v1', kind: list.kind }
  const unknown = root.lookupType('Unknown').encode({ typeMeta, raw }).finish()
  return { json: Buffer.from(JSON.stringify(list)), protobuf: Buffer.concat([Buffer.from('k8s\0'), unknown]) }
}

export function renderPages(
  nodes: number,
  pods: number,
  pageSize: number,
): { nodes: RenderedPage[]; pods: RenderedPage[] } {
  const pages = (kind: 'Pod' | 'Node', total: number, make: (n: number) => object) =>
    Array.from({ length: Math.ceil(total / pageSize) }, (_, page) => {
      const from = page * pageSize
      const size = Math.min(pageSize, total - from)
      return render(
        kind,
        Array.from({ length: size }, (_item, n) => make(from + n)),
        from,
        total,
        pageSize,
      )
    })
  return { nodes: pages('Node', nodes, aNode), pods: pages('Pod', pods, (n) => aPod(n, nodes)) }
}

/** The same numbers in every run. */
function hex(seed: number, length: number): string {
  let text = ''
  for (let x = seed + 1; text.length < length; x = (Math.imul(x, 1_664_525) + 1_013_904_223) >>> 0)
    text += x.toString(16).padStart(8, '0')
  return text.slice(0, length)
}
const uid = (n: number) => hex(n, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
const when = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 61_000).toISOString().replace('.000Z', 'Z')

function aPod(n: number, nodes: number): object {
  const app = `service-${n % 400}`
  const hash = hex(n % 400, 10)
  const own = (name: string) => `k:{"${name}"}`
  const containers = Array.from({ length: 1 + (n % 2) }, (_, at) => ({
    name: at === 0 ? 'main' : 'proxy',
    image: `registry.example.com/team-${n % 40}/${app}:v1.${n % 30}.${n % 7}`,
    ...(at === 0 ? { args: ['--listen=:8080', `--config=/etc/${app}/config.yaml`] } : {}),
    ports: [{ name: 'http', containerPort: 8080 + at, protocol: 'TCP' }],
    env: [
      { name: 'LOG_LEVEL', value: 'info' },
      { name: 'DATABASE_HOST', value: `db-${n % 40}.team-${n % 40}.svc.cluster.local` },
    ],
    resources: {
      limits: { cpu: `${1 + (n % 4)}`, memory: `${256 * (1 + (n % 6))}Mi` },
      requests: { cpu: `${50 * (1 + (n % 10))}m`, memory: `${128 * (1 + (n % 6))}Mi` },
    },
    volumeMounts: [
      { name: 'config', readOnly: true, mountPath: `/etc/${app}` },
      { name: 'kube-api-access', readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
    ],
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  }))
  return {
    metadata: {
      name: `${app}-${hash}-${hex(n, 8)}`,
      generateName: `${app}-${hash}-`,
      namespace: `team-${n % 40}`,
      uid: uid(n),
      resourceVersion: String(1_000_000 + n),
      creationTimestamp: when(n),
      labels: {
        'app.kubernetes.io/name': app,
        'app.kubernetes.io/instance': app,
        'pod-template-hash': hash,
        tier: 'backend',
      },
      annotations: { 'prometheus.io/scrape': 'true', 'prometheus.io/port': '8080' },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: `${app}-${hash}`,
          uid: uid(n % 400),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [
        {
          manager: 'kube-controller-manager',
          operation: 'Update',
          apiVersion: 'v1',
          time: when(n),
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:metadata': {
              'f:generateName': {},
              'f:labels': { '.': {}, 'f:app.kubernetes.io/name': {}, 'f:pod-template-hash': {} },
              'f:ownerReferences': { '.': {}, [own('uid')]: {} },
            },
            'f:spec': {
              'f:containers': {
                [own('name')]: {
                  '.': {},
                  'f:image': {},
                  'f:imagePullPolicy': {},
                  'f:name': {},
                  'f:ports': { '.': {} },
                  'f:resources': { '.': {}, 'f:limits': {}, 'f:requests': {} },
                },
              },
              'f:dnsPolicy': {},
              'f:enableServiceLinks': {},
              'f:restartPolicy': {},
              'f:schedulerName': {},
            },
          },
        },
        {
          manager: 'kubelet',
          operation: 'Update',
          apiVersion: 'v1',
          time: when(n + 1),
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:status': {
              'f:conditions': { [own('type')]: { '.': {}, 'f:lastTransitionTime': {}, 'f:status': {} } },
              'f:containerStatuses': {},
              'f:hostIP': {},
              'f:phase': {},
              'f:podIP': {},
              'f:startTime': {},
            },
          },
          subresource: 'status',
        },
      ],
    },
    spec: {
      volumes: [
        { name: 'config', configMap: { name: `${app}-config` } },
        { name: 'kube-api-access', secret: { secretName: `${app}-token`, defaultMode: 420 } },
      ],
      containers,
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: app,
      serviceAccount: app,
      nodeName: n % 97 === 0 ? '' : `node-${n % nodes}.example.com`,
      schedulerName: 'default-scheduler',
      tolerations: [
        { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
        { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
      ],
      priority: 0,
      enableServiceLinks: true,
      preemptionPolicy: 'PreemptLowerPriority',
    },
    status: {
      phase: n % 97 === 0 ? 'Pending' : 'Running',
      conditions: ['PodReadyToStartContainers', 'Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(
        (type) => ({
          type,
          status: 'True',
          lastTransitionTime: when(n),
        }),
      ),
      hostIP: `10.0.${n % 100}.1`,
      podIP: `10.128.${n % 250}.${n % 240}`,
      podIPs: [{ ip: `10.128.${n % 250}.${n % 240}` }],
      startTime: when(n),
      containerStatuses: containers.map(({ name, image }) => ({
        name,
        state: { running: { startedAt: when(n) } },
        lastState: {},
        ready: true,
        restartCount: n % 3,
        image,
        imageID: `registry.example.com/team-${n % 40}/${app}@sha256:${hex(n % 400, 64)}`,
        containerID: `containerd://${hex(n, 64)}`,
        started: true,
      })),
      qosClass: 'Burstable',
    },
  }
}

function aNode(n: number): object {
  const name = `node-${n}.example.com`
  return {
    metadata: {
      name,
      uid: uid(n),
      resourceVersion: String(n),
      creationTimestamp: when(n),
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/arch': 'amd64',
        'node-role.kubernetes.io/worker': '',
        'topology.kubernetes.io/zone': `zone-${n % 3}`,
      },
      annotations: {
        'node.alpha.kubernetes.io/ttl': '0',
        'volumes.kubernetes.io/controller-managed-attach-detach': 'true',
      },
    },
    spec: {
      podCIDR: `10.128.${n}.0/24`,
      podCIDRs: [`10.128.${n}.0/24`],
      providerID: `cloud:///zone-${n % 3}/${hex(n, 17)}`,
    },
    status: {
      capacity: { cpu: '16', memory: '65536Mi', pods: '250', 'ephemeral-storage': '100Gi' },
      allocatable: { cpu: '15500m', memory: '64000Mi', pods: '250', 'ephemeral-storage': '90Gi' },
      conditions: ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
        type,
        status: type === 'Ready' ? 'True' : 'False',
        lastHeartbeatTime: when(n),
        lastTransitionTime: when(n),
        reason: `Kubelet${type}`,
        message: 'kubelet has said so',
      })),
      addresses: [
        { type: 'InternalIP', address: `10.0.${n}.1` },
        { type: 'Hostname', address: name },
      ],
      nodeInfo: {
        machineID: hex(n, 32),
        systemUUID: uid(n),
        bootID: uid(n + 1),
        kernelVersion: '6.1.0',
        osImage: 'Linux',
        containerRuntimeVersion: 'containerd://2.0.1',
        kubeletVersion: 'v1.35.4',
        operatingSystem: 'linux',
        architecture: 'amd64',
      },
      images: Array.from({ length: 50 }, (_, at) => ({
        names: [`registry.example.com/i${at}@sha256:${hex(at, 64)}`, `registry.example.com/i${at}:v1`],
        sizeBytes: 100_000_000 + at,
      })),
    },
  }
}
