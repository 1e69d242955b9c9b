import argocd from '../../../../deploy/examples/metric-sources/argocd-applications.yaml?raw'
import certificates from '../../../../deploy/examples/metric-sources/certificates.yaml?raw'
import cronjobs from '../../../../deploy/examples/metric-sources/cronjobs.yaml?raw'
import deployments from '../../../../deploy/examples/metric-sources/deployment-health.yaml?raw'
import nodes from '../../../../deploy/examples/metric-sources/node-pressure.yaml?raw'
import volumes from '../../../../deploy/examples/metric-sources/pvc-capacity.yaml?raw'
import machines from '../../../../deploy/examples/metric-sources/virtual-machines.yaml?raw'

export interface Template {
  readonly title: string
  /** as shipped, ready to apply */
  readonly manifest: string
}

export const templates: readonly Template[] = [
  { title: 'Volume claims and their capacity', manifest: volumes },
  { title: 'Health of deployments', manifest: deployments },
  { title: 'Pressure on nodes', manifest: nodes },
  { title: 'CronJobs', manifest: cronjobs },
  { title: 'Certificates (cert-manager)', manifest: certificates },
  { title: 'Applications (Argo CD)', manifest: argocd },
  { title: 'Virtual machines (KubeVirt)', manifest: machines },
]
