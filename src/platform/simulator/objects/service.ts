import type { ApiObject } from '#apiserver'
import type { WorkloadFacts } from '../facts.ts'
import { hash } from '../random.ts'
import { timestamp } from './meta.ts'
import { labelsOf } from './workloads.ts'

/** What is reached from outside. */
const INGRESS = /^(ingress-nginx-controller|router-default|traefik|.*-gateway)$/

const addressOf = (name: string, network: string): string => {
  const at = hash(`${network}/${name}`)
  return [network, (at >> 8) & 255, 1 + (at & 127)].join('.')
}

/** A StatefulSet's gives each pod a name, that of an entrance an address outside, others one inside. */
export function serviceObject(workload: WorkloadFacts): ApiObject {
  const { name, namespace, kind } = workload
  const outside = kind === 'Deployment' && INGRESS.test(name)
  const clusterIP = kind === 'StatefulSet' ? 'None' : addressOf(`${namespace}/${name}`, '172.30')
  const nodePort = 30_000 + (hash(`port/${namespace}/${name}`) % 2767)
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name,
      namespace,
      ...(workload.serviceUid === undefined ? {} : { uid: workload.serviceUid }),
      creationTimestamp: timestamp(workload.createdAt),
      labels: labelsOf(workload),
    },
    spec: {
      type: outside ? 'LoadBalancer' : 'ClusterIP',
      selector: labelsOf(workload),
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, targetPort: 'http', ...(outside ? { nodePort } : {}) },
        ...(outside ? [] : [{ name: 'metrics', protocol: 'TCP', port: 9090, targetPort: 'metrics' }]),
      ],
      clusterIP,
      clusterIPs: [clusterIP],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      internalTrafficPolicy: 'Cluster',
      sessionAffinity: 'None',
      ...(outside ? { externalTrafficPolicy: 'Cluster', allocateLoadBalancerNodePorts: true } : {}),
    },
    status: {
      loadBalancer: outside ? { ingress: [{ ip: addressOf(`${namespace}/${name}`, '203.0'), ipMode: 'VIP' }] } : {},
    },
  }
}
