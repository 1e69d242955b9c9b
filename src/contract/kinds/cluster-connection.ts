import { type Static, Type } from 'typebox'
import { AcceptedCredentials } from './accepted-credentials.ts'
import { StatusConditions } from './conditions.ts'
import { defineKind, type KindObject } from './kind.ts'

const Seconds = (description: string) =>
  Type.Integer({ minimum: -2147483648, maximum: 2147483647, format: 'int32', description })

const CredentialsRef = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 253, description: 'name of the Secret' }),
    namespace: Type.Optional(
      Type.String({ maxLength: 253, description: 'namespace of the Secret; default: that of the ClusterConnection' }),
    ),
  },
  {
    description:
      'Secret with the access data; required, unless collectionMode is push: without it (or without endpoint) the hub never asks the cluster itself, and its agent is installed by hand (clusterpulse connect). Keys: "token" (bearer token) or "tls.crt" and "tls.key" (client certificate), optionally "ca.crt" (PEM bundle; without it the roots of the system count); or "kubeconfig", optionally "context".',
  },
)

const Spec = Type.Object(
  {
    displayName: Type.Optional(
      Type.String({ maxLength: 1024, description: 'shown name; default: the name of the object' }),
    ),
    endpoint: Type.Optional(
      Type.String({
        maxLength: 2048,
        // Without a scheme https is meant: manifests written so exist and were accepted.
        pattern: '^(https?://)?(\\[[0-9A-Fa-f:.%]+\\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/[^\\s?#]*)?$',
        faultMessage: 'must be the address of an API server, such as https://api.west.example.com:6443',
        description:
          'address of the API server, such as https://api.west.example.com:6443; no port is added. Required, unless collectionMode is push',
      }),
    ),
    credentialsRef: Type.Optional(CredentialsRef),
    labels: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'for grouping clusters and for access policies' }),
    ),
    monitoring: Type.Optional(
      Type.Object(
        {
          interval: Type.Optional(
            Seconds('seconds between two rounds; 0 or less: the default of the hub (30); 1 to 29 count as 30'),
          ),
          timeout: Type.Optional(
            Seconds(
              'seconds every request of a round may take; 0 or less: the default of the hub (10); 1 to 4 count as 5',
            ),
          ),
        },
        { description: 'how often, and how patiently' },
      ),
    ),
    collectionMode: Type.Optional(
      Type.Union([Type.Literal('pull'), Type.Literal('push')], {
        default: 'pull',
        description:
          'who collects: the hub (pull) or an agent beside the cluster (push). The hub deploys the agent where its credentials allow, and reads the cluster itself while no agent delivers',
      }),
    ),
    ingesterAddress: Type.Optional(
      Type.String({
        maxLength: 2048,
        description: 'host:port under which agents reach the hub; default: what the hub advertises',
      }),
    ),
    collectorVersion: Type.Optional(
      Type.String({ maxLength: 128, description: 'image tag of the agent; default: the version of the hub' }),
    ),
    insecureSkipTLSVerify: Type.Optional(
      Type.Boolean({
        description:
          'do not verify the certificate of the API server: anyone in between can read the credentials. Without it an http:// endpoint is refused unless it is on the loopback of the hub, as there is no certificate to verify: with it the token travels in the clear. Shown wherever the cluster is shown',
      }),
    ),
    tlsServerName: Type.Optional(
      Type.String({
        maxLength: 253,
        description: 'name the certificate must carry, where it is not that of the endpoint',
      }),
    ),
    proxyURL: Type.Optional(
      Type.String({
        maxLength: 2048,
        pattern: '^https?://[^\\s]+$',
        faultMessage: 'must be an http or https address',
        description: 'HTTP proxy for this cluster',
      }),
    ),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object(
  {
    phase: Type.Optional(
      Type.String({ maxLength: 64, description: 'Connecting before the first round, then Connected or Error' }),
    ),
    health: Type.Optional(Type.String({ maxLength: 64, description: 'healthy, degraded, unhealthy or unknown' })),
    message: Type.Optional(Type.String({ maxLength: 32768, description: 'why, for people' })),
    lastSyncTime: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'time of the last round that read the nodes; written at most once a minute while nothing else changes',
      }),
    ),
    nodes: Type.Optional(Type.Integer({ minimum: 0, description: 'number of nodes' })),
    namespaces: Type.Optional(Type.Integer({ minimum: 0, description: 'number of namespaces' })),
    owner: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'process of the hub that owns the cluster: reads it or receives its agent, and has its log and state; absent where one process owns all',
      }),
    ),
    credentials: Type.Optional(AcceptedCredentials),
    conditions: Type.Optional(StatusConditions),
    collectorStatus: Type.Optional(
      Type.Object(
        {
          connected: Type.Boolean({ description: 'its stream to the hub is open' }),
          version: Type.Optional(Type.String({ maxLength: 128, description: 'of the agent, as it says' })),
          lastHeartbeat: Type.Optional(
            Type.String({ format: 'date-time', description: 'its last message; written at most once a minute' }),
          ),
          since: Type.Optional(
            Type.String({ format: 'date-time', description: 'since when it is connected, or is not' }),
          ),
          delivering: Type.Optional(
            Type.Boolean({ description: 'its batches are accepted: the hub reads nothing from the cluster itself' }),
          ),
          authentication: Type.Optional(
            Type.String({
              maxLength: 64,
              description: 'how it proved who it is: token, certificate or connection-token',
            }),
          ),
          bufferedBatches: Type.Optional(
            Type.Integer({ minimum: 0, description: 'batches that await delivery; written at most once a minute' }),
          ),
          lostBatches: Type.Optional(
            Type.Integer({ minimum: 0, description: 'batches it declared lost; written at most once a minute' }),
          ),
        },
        { description: 'the agent beside the cluster (push)' },
      ),
    ),
  },
  { description: 'what is seen; written by the hub' },
)

/** How to reach a cluster, and who collects from it. */
export const clusterConnection = defineKind({
  group: 'clusterpulse.io',
  version: 'v1alpha1',
  kind: 'ClusterConnection',
  plural: 'clusterconnections',
  singular: 'clusterconnection',
  shortNames: ['cc'],
  description:
    'A cluster of the fleet: where its API is, with which credentials, how often it is read. Its name is the name of the cluster everywhere.',
  columns: [
    { name: 'Display Name', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Endpoint', type: 'string', jsonPath: '.spec.endpoint' },
    { name: 'Status', type: 'string', jsonPath: '.status.phase' },
    { name: 'Health', type: 'string', jsonPath: '.status.health' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Mode', type: 'string', jsonPath: '.spec.collectionMode', priority: 1 },
    { name: 'Agent', type: 'boolean', jsonPath: '.status.collectorStatus.connected', priority: 1 },
    { name: 'Nodes', type: 'integer', jsonPath: '.status.nodes', priority: 1 },
    { name: 'Last Sync', type: 'date', jsonPath: '.status.lastSyncTime', priority: 1 },
    { name: 'Owner', type: 'string', jsonPath: '.status.owner', priority: 1 },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
  spec: Spec,
  requiredUnless: { field: 'collectionMode', value: 'push', required: ['endpoint', 'credentialsRef'] },
  status: Status,
  example: {
    apiVersion: 'clusterpulse.io/v1alpha1',
    kind: 'ClusterConnection',
    metadata: { name: 'west', namespace: 'clusterpulse' },
    spec: {
      displayName: 'West',
      endpoint: 'https://api.west.example.com:6443',
      credentialsRef: { name: 'west-credentials' },
      labels: { environment: 'production' },
      monitoring: { interval: 30, timeout: 10 },
    },
  },
})

/** What an administrator declares of a cluster: endpoint, credentials, intervals in seconds, who collects. */
export type ClusterConnectionSpec = Static<typeof Spec>
/** What the hub reports of it: phase, conditions, endpoint and agent; times as RFC 3339. */
export type ClusterConnectionStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type ClusterConnection = KindObject<ClusterConnectionSpec, ClusterConnectionStatus>
