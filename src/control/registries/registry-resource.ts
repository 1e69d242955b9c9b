import { endpointAnnotations } from '#credentials'
import { type RegistryConnection, registryConnection } from '#kinds'
import { type KubeObject, type Resource, secrets } from '#kube'

/** RegistryConnections, as the API server has them; what it keeps for itself is left out. */
export const registryResource: Resource<KubeObject> = {
  group: registryConnection.group,
  version: registryConnection.version,
  plural: registryConnection.plural,
  kind: registryConnection.kind,
  namespaced: true,
  fromJson: ({ metadata: { managedFields: _, ...metadata }, ...object }) => ({ ...object, metadata }),
}

/** One of them, served under our schema. */
export type Registry = RegistryConnection & { readonly metadata: KubeObject['metadata'] }

/** A Secret, as far as it can hold credentials of a registry; decoded. Its other data is never held. */
export interface CredentialSecret extends KubeObject {
  readonly username: string | undefined
  readonly password: string | undefined
}

export const credentialSecrets: Resource<CredentialSecret> = {
  group: secrets.group,
  version: secrets.version,
  plural: secrets.plural,
  kind: secrets.kind,
  namespaced: true,
  fromJson: credentialSecret,
}

export function credentialSecret({ metadata, data, stringData }: KubeObject): CredentialSecret {
  const { name, namespace, uid, resourceVersion } = metadata
  const read = (key: string): string | undefined => {
    const encoded = (data as Readonly<Record<string, unknown>> | undefined)?.[key]
    if (typeof encoded === 'string') return Buffer.from(encoded, 'base64').toString('utf8')
    const plain = (stringData as Readonly<Record<string, unknown>> | undefined)?.[key] // servers that keep what was sent
    return typeof plain === 'string' ? plain : undefined
  }
  return {
    metadata: {
      name,
      ...(namespace && { namespace }),
      ...(uid && { uid }),
      ...(resourceVersion && { resourceVersion }),
      ...endpointAnnotations(metadata),
    },
    username: read('username'),
    password: read('password'),
  }
}
