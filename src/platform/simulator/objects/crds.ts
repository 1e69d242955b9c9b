import type { ApiObject } from '#apiserver'
import { timestamp } from './meta.ts'

interface CrdNames {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  /** name and path of what `kubectl get` prints */
  readonly columns: Readonly<Record<string, string>>
}

const OLM: readonly CrdNames[] = [
  {
    group: 'operators.coreos.com',
    version: 'v1alpha1',
    kind: 'Subscription',
    plural: 'subscriptions',
    namespaced: true,
    shortNames: ['sub', 'subs'],
    columns: { Package: '.spec.name', Source: '.spec.source', Channel: '.spec.channel' },
  },
  {
    group: 'operators.coreos.com',
    version: 'v1alpha1',
    kind: 'ClusterServiceVersion',
    plural: 'clusterserviceversions',
    namespaced: true,
    shortNames: ['csv', 'csvs'],
    columns: { Display: '.spec.displayName', Version: '.spec.version', Phase: '.status.phase' },
  },
]

const OPENSHIFT: readonly CrdNames[] = [
  {
    group: 'config.openshift.io',
    version: 'v1',
    kind: 'ClusterVersion',
    plural: 'clusterversions',
    namespaced: false,
    shortNames: [],
    columns: {
      Version: '.status.history[?(@.state=="Completed")].version',
      Status: '.status.conditions[?(@.type=="Progressing")].message',
    },
  },
  {
    group: 'config.openshift.io',
    version: 'v1',
    kind: 'ClusterOperator',
    plural: 'clusteroperators',
    namespaced: false,
    shortNames: ['co'],
    columns: {
      Version: '.status.versions[?(@.name=="operator")].version',
      Available: '.status.conditions[?(@.type=="Available")].status',
      Progressing: '.status.conditions[?(@.type=="Progressing")].status',
      Degraded: '.status.conditions[?(@.type=="Degraded")].status',
    },
  },
  {
    group: 'route.openshift.io',
    version: 'v1',
    kind: 'Route',
    plural: 'routes',
    namespaced: true,
    shortNames: [],
    columns: { Host: '.spec.host', Termination: '.spec.tls.termination' },
  },
]

const CERT_MANAGER: readonly CrdNames[] = [
  {
    group: 'cert-manager.io',
    version: 'v1',
    kind: 'Certificate',
    plural: 'certificates',
    namespaced: true,
    shortNames: ['cert', 'certs'],
    columns: { Ready: '.status.conditions[?(@.type=="Ready")].status', Secret: '.spec.secretName' },
  },
]

/** What serves the kinds of OLM, OpenShift and cert-manager: their schemas take any field. */
export const crdObjects = (
  which: { olm: boolean; openshift: boolean; certManager: boolean },
  createdAt: number,
): ApiObject[] =>
  [...(which.olm ? OLM : []), ...(which.openshift ? OPENSHIFT : []), ...(which.certManager ? CERT_MANAGER : [])].map(
    (names) => crdObject(names, createdAt),
  )

function crdObject(names: CrdNames, createdAt: number): ApiObject {
  const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const singular = names.kind.toLowerCase()
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${names.plural}.${names.group}`, creationTimestamp: timestamp(createdAt) },
    spec: {
      group: names.group,
      names: {
        kind: names.kind,
        listKind: `${names.kind}List`,
        plural: names.plural,
        singular,
        shortNames: names.shortNames,
      },
      scope: names.namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: names.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec: open, status: open } } },
          subresources: { status: {} },
          additionalPrinterColumns: Object.entries(names.columns).map(([name, jsonPath]) => ({
            name,
            type: 'string',
            jsonPath,
          })),
        },
      ],
    },
  }
}
