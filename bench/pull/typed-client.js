// The typed client of Kubernetes' Node library. In JavaScript, because its declarations (8 MB) would be most of what
// `npm run check` reads.
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'

export function typedClient(server, caData) {
  const config = new KubeConfig()
  config.loadFromClusterAndUser({ name: 'c', server, caData, skipTLSVerify: false }, { name: 'u', token: 't' })
  return config.makeApiClient(CoreV1Api)
}
