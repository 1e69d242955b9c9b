import { stringify } from 'yaml'

/** One context: a cluster and who enters it. */
export interface KubeconfigEntry {
  readonly name: string
  readonly url: string
  readonly token: string
  readonly caPem: string
}

/** A kubeconfig with one context per entry, named like it; the first is the current one. */
export function kubeconfigOf(entries: readonly KubeconfigEntry[]): string {
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': entries[0]?.name ?? '',
      clusters: entries.map(({ name, url, caPem }) => ({
        name,
        cluster: { server: url, 'certificate-authority-data': Buffer.from(caPem).toString('base64') },
      })),
      users: entries.map(({ name, token }) => ({ name, user: { token } })),
      contexts: entries.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
    },
    // The same certificate a thousand times is written out each time: kubeconfig readers know no anchors.
    { aliasDuplicateObjects: false, lineWidth: 0 },
  )
}
