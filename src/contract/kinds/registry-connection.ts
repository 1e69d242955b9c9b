import { type Static, Type } from 'typebox'
import { AcceptedCredentials } from './accepted-credentials.ts'
import { StatusConditions } from './conditions.ts'
import { defineKind, type KindObject } from './kind.ts'

const Int32 = (description: string) =>
  Type.Integer({ minimum: -2147483648, maximum: 2147483647, format: 'int32', description })
const Text = (maxLength: number, description: string) => Type.String({ maxLength, description })

const Spec = Type.Object(
  {
    displayName: Type.Optional(Text(1024, 'shown name; default: the name of the object')),
    endpoint: Type.String({
      minLength: 1,
      maxLength: 2048,
      pattern: '^([Hh][Tt][Tt][Pp][Ss]?://)?[^\\s/?#@]+(/[^\\s?#]*)?$',
      faultMessage: 'must be the address of a registry, such as https://registry.example.com, without credentials',
      description: 'address of the registry, such as https://registry.example.com; without a scheme https is meant',
    }),
    type: Type.Optional(Text(128, 'what it is, such as harbor; shown only')),
    credentialsRef: Type.Optional(
      Type.Object(
        {
          name: Type.String({ minLength: 1, maxLength: 253, description: 'name of the Secret' }),
          namespace: Type.Optional(Text(253, 'namespace of the Secret; default: that of the object')),
        },
        { description: 'Secret with `username` and `password`; without it the registry is asked anonymously' },
      ),
    ),
    insecure: Type.Optional(
      Type.Boolean({ description: 'plain HTTP is allowed; without it an http:// endpoint is refused' }),
    ),
    skipTLSVerify: Type.Optional(
      Type.Boolean({
        description:
          'do not verify the certificate: anyone in between can read the credentials. Shown wherever the registry is',
      }),
    ),
    caBundle: Type.Optional(
      Text(65_536, 'PEM bundle that the certificate is verified with, instead of the roots of the system'),
    ),
    allowPrivateRedirects: Type.Optional(
      Type.Boolean({
        description: 'follow redirects to loopback and private addresses; without it they are refused',
      }),
    ),
    monitoring: Type.Optional(
      Type.Object(
        {
          interval: Type.Optional(Int32('seconds between two probes; 0 or less: 60; 1 to 29 count as 30')),
          timeout: Type.Optional(Int32('seconds one probe may take; 0 or less: 10')),
          checkCatalog: Type.Optional(Type.Boolean({ description: 'count the repositories' })),
          maxCatalogEntries: Type.Optional(
            Int32('repositories per page of the catalogue; 0: 100; negative: as the registry likes'),
          ),
        },
        { description: 'how often, how patiently, how much' },
      ),
    ),
    labels: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'for grouping and for access policies' }),
    ),
    healthCheckPaths: Type.Optional(
      Type.Array(Text(1024, 'path'), {
        maxItems: 10,
        description: 'paths that must answer besides /v2/, such as /api/v2.0/health',
      }),
    ),
  },
  { description: 'what is wanted' },
)

const Status = Type.Object(
  {
    available: Type.Optional(Type.Boolean({ description: 'the registry answers /v2/ as one does' })),
    phase: Type.Optional(Text(64, 'Connecting before the first probe, then Connected or Error')),
    health: Type.Optional(Text(64, 'healthy, degraded, unhealthy or unknown')),
    lastCheckTime: Type.Optional(
      Type.String({
        format: 'date-time',
        description: 'of the last probe; written at most once a minute while nothing else changes',
      }),
    ),
    responseTime: Type.Optional(
      Type.Integer({ minimum: 0, format: 'int64', description: 'milliseconds until /v2/ answered' }),
    ),
    message: Type.Optional(Text(32_768, 'for people')),
    repositoryCount: Type.Optional(Type.Integer({ minimum: 0, description: 'repositories in the catalogue' })),
    version: Type.Optional(Text(256, 'of the API, as the registry says')),
    features: Type.Optional(Type.Record(Type.String(), Type.Boolean(), { description: 'what was noticed' })),
    credentials: Type.Optional(AcceptedCredentials),
    conditions: Type.Optional(StatusConditions),
  },
  { description: 'what is seen; written by the hub' },
)

/** A container registry that is watched. */
export const registryConnection = defineKind({
  group: 'clusterpulse.io',
  version: 'v1alpha1',
  kind: 'RegistryConnection',
  plural: 'registryconnections',
  singular: 'registryconnection',
  shortNames: ['rc', 'regcon'],
  description:
    'A container registry whose availability, response time and catalogue are watched. Anything that speaks the Docker Registry v2 API.',
  columns: [
    { name: 'Display Name', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Endpoint', type: 'string', jsonPath: '.spec.endpoint' },
    { name: 'Type', type: 'string', jsonPath: '.spec.type' },
    { name: 'Available', type: 'boolean', jsonPath: '.status.available' },
    { name: 'Health', type: 'string', jsonPath: '.status.health' },
    { name: 'Response Time', type: 'integer', jsonPath: '.status.responseTime' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Message', type: 'string', jsonPath: '.status.message', priority: 1 },
  ],
  spec: Spec,
  status: Status,
  example: {
    apiVersion: 'clusterpulse.io/v1alpha1',
    kind: 'RegistryConnection',
    metadata: { name: 'harbor', namespace: 'clusterpulse' },
    spec: {
      displayName: 'Harbor',
      endpoint: 'https://harbor.example.com',
      credentialsRef: { name: 'harbor-credentials' },
      monitoring: { interval: 60, checkCatalog: true },
    },
  },
})

/** Address, credentials and checks of a container registry; intervals in seconds. */
export type RegistryConnectionSpec = Static<typeof Spec>
/** What the last probe found, with its time as RFC 3339. */
export type RegistryConnectionStatus = Static<typeof Status>
/** The object as the hub's API keeps it. */
export type RegistryConnection = KindObject<RegistryConnectionSpec, RegistryConnectionStatus>
