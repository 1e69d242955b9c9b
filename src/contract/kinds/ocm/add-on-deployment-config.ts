import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Bytes, keyedBy, Text } from '../parts.ts'
import { ADDON_GROUP } from './names.ts'
import { NodePlacement, Quantities } from './parts.ts'

const Spec = Type.Object(
  {
    customizedVariables: Type.Optional(
      Type.Array(
        Type.Object({
          name: Type.String({ maxLength: 255, pattern: '^[a-zA-Z_][_a-zA-Z0-9]*$', description: 'name' }),
          value: Type.Optional(Text(1024, 'value')),
        }),
        { ...keyedBy('name'), description: 'values that the add-on puts into its manifests' },
      ),
    ),
    nodePlacement: Type.Optional(NodePlacement),
    registries: Type.Optional(
      Type.Array(
        Type.Object({
          mirror: Text(2048, 'registry that is asked instead'),
          source: Type.Optional(Text(2048, 'registry as images name it; absent: every one')),
        }),
        { description: 'where images come from' },
      ),
    ),
    proxyConfig: Type.Optional(
      Type.Object(
        {
          httpProxy: Type.Optional(Text(2048, 'proxy for http')),
          httpsProxy: Type.Optional(Text(2048, 'proxy for https')),
          caBundle: Type.Optional(Bytes('PEM of the CAs of an https proxy')),
          noProxy: Type.Optional(Text(32768, 'what is reached without, divided by commas')),
        },
        { description: 'proxies on the way out' },
      ),
    ),
    agentInstallNamespace: Type.Optional(
      Type.String({
        maxLength: 63,
        pattern: '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$',
        default: 'open-cluster-management-agent-addon',
        description: 'namespace on the member; empty: what the template of the add-on says',
      }),
    ),
    resourceRequirements: Type.Optional(
      Type.Array(
        Type.Object({
          containerID: Type.String({
            maxLength: 1024,
            pattern: '^(deployments|daemonsets|statefulsets|replicasets|jobs|cronjobs|pods|\\*):.+:.+$',
            faultMessage: 'must be resource:name:container, such as deployments:agent:*',
            description: 'containers, as resource:name:container; * is any',
          }),
          resources: Type.Object(
            {
              claims: Type.Optional(
                Type.Array(
                  Type.Object({
                    name: Text(253, 'name of the claim in the pod'),
                    request: Type.Optional(Text(253, 'which part of it; absent: all')),
                  }),
                  { ...keyedBy('name'), description: 'devices that are claimed' },
                ),
              ),
              requests: Type.Optional(Quantities('at least')),
              limits: Type.Optional(Quantities('at most')),
            },
            { description: 'what they take' },
          ),
        }),
        { ...keyedBy('containerID'), description: 'what containers take; the last that matches counts' },
      ),
    ),
    replicaConfigs: Type.Optional(
      Type.Array(
        Type.Object({
          workloadID: Type.String({
            maxLength: 1024,
            pattern: '^(deployments|statefulsets|\\*):.+$',
            faultMessage: 'must be resource:name, such as deployments:agent',
            description: 'workloads, as resource:name; * is any',
          }),
          replicas: Type.Integer({ minimum: 0, maximum: 2147483647, format: 'int32', description: 'how many pods' }),
        }),
        { 'x-kubernetes-list-type': 'atomic', description: 'how many pods; the last that matches counts' },
      ),
    ),
  },
  { description: 'how an add-on is deployed' },
)

/** How an add-on is deployed on members. */
export const addOnDeploymentConfig = defineKind({
  group: ADDON_GROUP,
  version: 'v1beta1',
  kind: 'AddOnDeploymentConfig',
  plural: 'addondeploymentconfigs',
  singular: 'addondeploymentconfig',
  shortNames: [],
  categories: [],
  description: 'How an add-on is deployed on members: variables, nodes, registries, proxies, amounts.',
  columns: [],
  spec: Spec,
  others: [{ version: 'v1alpha1', columns: [], spec: Spec }],
  example: {
    apiVersion: `${ADDON_GROUP}/v1beta1`,
    kind: 'AddOnDeploymentConfig',
    metadata: { name: 'east-nodes', namespace: 'open-cluster-management' },
    spec: { nodePlacement: { nodeSelector: { zone: 'east' } } },
  },
})

/** How an add-on is deployed. */
export type AddOnDeploymentConfigSpec = Static<typeof Spec>
/** The object as the hub's API keeps it. */
export type AddOnDeploymentConfig = KindObject<AddOnDeploymentConfigSpec, unknown>
