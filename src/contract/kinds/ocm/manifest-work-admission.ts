import type { AdmissionRequest, AdmissionRule, AdmittedObject, NeededRight } from '../admission.ts'
import { manifestWork } from './manifest-work.ts'
import { WORK_GROUP } from './names.ts'

interface Work {
  readonly executor?: {
    readonly subject?: { readonly serviceAccount?: { readonly namespace?: string; readonly name?: string } }
  }
}

/** The user name of the account that a work is applied as; undefined where it names none. */
function executorOf(object: AdmittedObject | undefined): string | undefined {
  const { namespace, name } = (object?.spec as Work | undefined)?.executor?.subject?.serviceAccount ?? {}
  return name && `system:serviceaccount:${namespace}:${name}`
}

function rights({ object, before, namespace }: AdmissionRequest): NeededRight[] {
  const executor = executorOf(object)
  if (executor === undefined || executor === executorOf(before)) return []
  return [
    {
      verb: 'execute-as',
      group: WORK_GROUP,
      resource: 'manifestworks',
      ...(namespace && { namespace }),
      name: executor,
      purpose: `let the work be applied as ${executor}`,
    },
  ]
}

/** What works must be, and as whom they may be applied. */
export const manifestWorkAdmission: AdmissionRule = {
  name: 'manifestworks.admission.clusterpulse.io',
  group: WORK_GROUP,
  versions: ['v1'],
  resources: ['manifestworks'],
  operations: ['CREATE', 'UPDATE'],
  namespaced: true,
  rights,
  faults: ({ object }) => manifestWork.faults(object),
}
