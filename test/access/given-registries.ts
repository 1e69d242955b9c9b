import type { ClusterState } from '#model'
import type { RegistryReader, RegistryState } from '#registry'

/** One registry of each cluster's name and labels: policies select both alike. Every second one was never probed. */
export const registryOf = ({ name, connection }: ClusterState, at: number): RegistryState => ({
  facts: {
    ...{ name, displayName: `zq77x${at}qz`, endpoint: `https://${name}.example`, type: 'harbor' },
    labels: connection?.labels ?? {},
    ...{ insecure: false, skipTlsVerify: false, caPem: undefined, allowPrivateRedirects: false },
    credentialsRef: { name: 'robot', namespace: 'app-1' },
    ...{ intervalMs: 60_000, timeoutMs: 10_000, checkCatalog: true, catalogPageSize: 100, healthCheckPaths: [] },
  },
  last:
    at % 2 === 1
      ? null
      : {
          ...{ at: 0, available: false, responseMs: at, version: '', features: {}, repositoryCount: null },
          ...{
            isCatalogTruncated: false,
            repositories: null,
            health: 'unhealthy',
            message: 'refused',
            code: 'unauthorized',
          },
          ...{ error: 'no way with the credentials of Secret app-1/robot', warnings: [] },
        },
  since: null,
  version: 1,
})

/** Registries that are what a test says; every saying is a new version. */
export class GivenRegistries implements RegistryReader {
  #version = 0
  #all: readonly RegistryState[] = []

  set(all: readonly RegistryState[]): void {
    this.#version += 1
    this.#all = all.toSorted((left, right) => (left.facts.name < right.facts.name ? -1 : 1))
  }

  registries(): readonly RegistryState[] {
    return this.#all
  }

  registry(name: string): RegistryState | undefined {
    return this.#all.find(({ facts }) => facts.name === name)
  }

  measurements(name: string) {
    return this.registry(name)?.last ? [{ at: 0, available: false, responseMs: null }] : []
  }

  version(): number {
    return this.#version
  }

  unavailable(): undefined {
    return undefined
  }

  onChange(): () => void {
    return () => undefined
  }
}
