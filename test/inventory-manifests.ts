/*
 * Manifests of inventory that journeys apply, as people write them. Where nothing else is said they stand in the namespace `shop`.
 */

/** Joins manifests to one text for `kubectl apply`. */
export const together = (...manifests: readonly string[]): string => manifests.join('---')

/** Takes `data.mode` of ConfigMaps that are labelled `app=web`. */
export const SETTINGS = `
apiVersion: kollect.dev/v1alpha1
kind: KollectProfile
metadata: { name: settings, namespace: shop }
spec:
  targetGVK: { version: v1, kind: ConfigMap }
  attributes: [{ name: mode, path: "{.data.mode}", optional: true }]
---
apiVersion: kollect.dev/v1alpha1
kind: KollectTarget
metadata: { name: settings, namespace: shop }
spec: { profileRef: settings, labelSelector: { matchLabels: { app: web } } }
`

/** All rows of the namespace, to nowhere unless something is named. */
export const anInventory = (name: string, spec: object = {}): string => `
apiVersion: kollect.dev/v1alpha1
kind: KollectInventory
metadata: { name: ${name}, namespace: shop }
spec: ${JSON.stringify(spec)}
`

/** A PostgreSQL that gets the table `inventory`, and an inventory of this name that goes there. */
export const toPostgres = (dsn: string, inventory: string): string =>
  together(
    `
apiVersion: v1
kind: Secret
metadata: { name: warehouse, namespace: shop }
stringData: { dsn: ${JSON.stringify(dsn)} }
---
apiVersion: kollect.dev/v1alpha1
kind: KollectDatabaseSink
metadata: { name: warehouse, namespace: shop }
spec: { type: postgres, postgres: { databaseRef: { name: warehouse }, table: inventory } }
`,
    anInventory(inventory, { databaseSinkRefs: ['warehouse'] }),
  )

/** One that `SETTINGS` takes. */
export const configMap = (name: string, mode = 'on', namespace = 'shop'): string => `
apiVersion: v1
kind: ConfigMap
metadata: { name: ${name}, namespace: ${namespace}, labels: { app: web } }
data: { mode: "${mode}" }
`
