import { clusterServiceVersions, type KubeObject, type Resource, subscriptions } from '#kube'
import type { OperatorSnapshot } from '#model'
import { fed, foldOf, Kept, listOf } from './fold.ts'
import { fields, instant, isFields, items, text, textMap } from './read.ts'
import type { Collector } from './types.ts'

/** What we take from a subscription of the Operator Lifecycle Manager. */
export interface SubscriptionFacts {
  readonly name: string
  readonly namespace: string
  readonly installedCsv: string
  /** WATCH_NAMESPACE as set by the person who subscribed; '' where not set */
  readonly watchNamespace: string
}

/** What we take from a ClusterServiceVersion. */
export interface CsvFacts {
  readonly name: string
  readonly namespace: string
  /** null where it has no spec: it describes nothing yet */
  readonly operator: OperatorSnapshot | null
  readonly targetNamespaces: string
}

/** One that describes something. */
type Described = CsvFacts & { readonly operator: OperatorSnapshot }

// Projected while a page is read: icons and examples must not be held, and they make up nearly all of these objects.
const subscribed = listOf(projected(subscriptions, subscriptionFacts), { isOptional: true })
const csvs = listOf(projected(clusterServiceVersions, csvFacts), {
  isOptional: true,
  labelSelector: '!olm.copiedFrom',
  pageSize: 50,
})

function projected<T>(resource: Resource, fromJson: (object: KubeObject) => T): Resource<T> {
  const { group, version, plural, kind, namespaced } = resource
  return { group, version, plural, kind, namespaced, fromJson }
}

/**
 * Operators installed through subscriptions. Two lists instead of one request per operator; copies that OLM spreads over
 * all namespaces are left out by their label. These objects are large (icons, examples), hence the small pages.
 */
export const operatorCollector: Collector = {
  name: 'operators',
  types: ['operator'],
  reads: [subscribed, csvs],
  critical: false,
  everyMs: ({ operatorScanIntervalMs }) => operatorScanIntervalMs,
  open() {
    const wanted = new Kept({ key: placeOfFacts, of: (facts: SubscriptionFacts) => facts })
    const installed = new Kept({ key: placeOfFacts, of: (facts: CsvFacts) => facts })
    return foldOf([fed(subscribed, wanted), fed(csvs, installed)], () => {
      if (!wanted.isServed) return { absent: 'OLM is not installed on this cluster' }
      const found = new Map(installed.values().map((csv) => [placeOfFacts(csv), csv]))
      return { operator: operatorSnapshots(wanted.values(), found) }
    })
  },
}

const placeOfFacts = ({ namespace, name }: Pick<CsvFacts, 'namespace' | 'name'>) => `${namespace}/${name}`

/** One snapshot per installed version, sorted by name; a subscription whose version is not there yet makes none. */
export function operatorSnapshots(
  wanted: readonly SubscriptionFacts[],
  found: ReadonlyMap<string, CsvFacts>,
): OperatorSnapshot[] {
  const byName = new Map<string, OperatorSnapshot>()
  for (const subscription of wanted) {
    const csv = found.get(`${subscription.namespace}/${subscription.installedCsv}`)
    if (!csv || !isDescribed(csv)) continue
    const availableInNamespaces = namespacesOf(csv, subscription.watchNamespace)
    byName.set(csv.operator.name, { ...csv.operator, availableInNamespaces })
  }
  return [...byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

const isDescribed = (csv: CsvFacts): csv is Described => csv.operator !== null

/** Where the operator works: everywhere; or as the subscriber says; or as OLM noted; or where it is installed. */
function namespacesOf({ operator, targetNamespaces, namespace }: Described, watchNamespace: string): string[] {
  if (operator.clusterWide) return ['*']
  const said = [watchNamespace, targetNamespaces.replace(/^["']+|["']+$/g, '')].map(names)
  return said.find((list) => list.length > 0) ?? [namespace]
}

const names = (list: string) =>
  list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

export function subscriptionFacts(object: KubeObject): SubscriptionFacts {
  const env = items(fields(fields(object.spec).config).env)
  return {
    name: object.metadata.name,
    namespace: object.metadata.namespace ?? '',
    installedCsv: text(fields(object.status).installedCSV),
    watchNamespace: text(env.find(({ name }) => name === 'WATCH_NAMESPACE')?.value),
  }
}

export function csvFacts(object: KubeObject): CsvFacts {
  const { name, namespace = '' } = object.metadata
  if (!isFields(object.spec)) return { name, namespace, operator: null, targetNamespaces: '' }
  const { spec } = object
  const status = fields(object.status)
  const createdAt = instant(object.metadata.creationTimestamp)
  const installModes = items(spec.installModes)
    .filter(({ supported }) => supported === true)
    .map(({ type }) => text(type))
  const clusterWide = installModes.includes('AllNamespaces')
  const operator: OperatorSnapshot = {
    name: `${namespace}/${name}`,
    csv: name,
    displayName: text(spec.displayName) || name,
    version: text(spec.version) || 'unknown',
    provider: text(fields(spec.provider).name),
    status: text(status.phase) || 'Unknown',
    namespace,
    installModes,
    installMode: clusterWide ? 'AllNamespaces' : Array.isArray(spec.installModes) ? 'SingleNamespace' : '',
    clusterWide,
    availableInNamespaces: [],
    createdAt,
    updatedAt: instant(status.lastUpdateTime) ?? createdAt,
  }
  const targetNamespaces = textMap(object.metadata.annotations)['olm.targetNamespaces'] ?? ''
  return { name, namespace, operator, targetNamespaces }
}
