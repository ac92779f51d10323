(^|^\S+: +|^\S+ +\| |<std(out|err)>: ?|pid=\d+[^)]*\) |^[A-Z]+:[\w.]+:|^\d{4}-\d\d-\d\d[T ]\S+ )(\w+\.)*(ValueError|AssertionError|ModuleNotFoundError|FileNotFoundError|UnicodeDecodeError|(json\.decoder\.)?JSONDecodeError|FloatingPointError|StopIteration|EOFError|IsADirectoryError|OverflowError)(:|$)
(\] ?|\]: {0,8}|RayTaskError\()(KeyError|IndexError|NameError|ZeroDivisionError|UnboundLocalError|SyntaxError|IndentationError|RecursionError)([:)]|$)
(\] ?|\]: {0,8}|RayTaskError\()(AttributeError|TypeError|NotImplementedError)([:)]|$)
(\] ?|\]: {0,8}|RayTaskError\()(\w+\.)*(ValueError|AssertionError|ModuleNotFoundError|FileNotFoundError|UnicodeDecodeError|JSONDecodeError|FloatingPointError|EOFError|IsADirectoryError|OverflowError|UnpicklingError|SafetensorError|ValidationError)([:)]|$)
(^|^\S+: +|^\S+ +\| |<std(out|err)>: ?|pid=\d+[^)]*\) |^[A-Z]+:[\w.]+:|^\d{4}-\d\d-\d\d[T ]\S+ )(pickle\.UnpicklingError|_pickle\.UnpicklingError|safetensors_rust\.SafetensorError|yaml\.\w+\.\w+Error|omegaconf\.errors\.\w+|pydantic_core\.\S+ValidationError|huggingface_hub\.\S*Error|datasets\.\S*Error)(:|$| )
RuntimeError: (shape '[^']*' is invalid for input of size|mat1 and mat2 (shapes cannot be multiplied|must have the same dtype)|The size of tensor a \(\d+\) must match|Sizes of tensors must match|stack expects each tensor to be equal size|The expanded size of the tensor|Expected all tensors to be on the same device|expected scalar type \w+ but found|Given groups=|Input type \(|Error\(s\) in loading state_dict|size mismatch, )
RuntimeError: (Trying to backward through the graph a second time|element 0 of tensors does not require grad|one of the variables needed for gradient computation has been modified|Expected to have finished reduction in the prior iteration|Expected to mark a variable ready only once|grad can be implicitly created only for scalar)
device-side assert triggered|cudaErrorAssert|CUDA_ERROR_ASSERT|: block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion .* failed
[Ll]oss (is|was|became|=) *(nan|NaN|inf|Inf)\b.*([Ss]top|[Aa]bort|[Ee]xit|at step|at iteration)|found (NaN|Inf|nan|inf) in (local )?(forward loss|grad norm|the loss|gradient)|Current loss scale already at minimum|The loss returned in .training_step. is nan or inf|Detected (nan|inf|NaN) (or inf )?in (the )?(loss|gradients?), (stop|abort)
Signal: Segmentation fault \(11\)|Signal 11 \(SIGSEGV\)|failed \(exitcode: -11\)|exitcode *: -11 |exits with return code = -11\b|exited on signal 11 |task \d+: Segmentation fault|^(\[\S+\] )?Segmentation fault \(core dumped\)|Fatal Python error: Segmentation fault|Caught signal 11 \(Segmentation fault|exit code:? 139\b|exited with code 139\b
Signal 4 \(SIGILL\)|failed \(exitcode: -4\)|exitcode *: -4 |exited on signal 4 |task \d+: Illegal instruction|^Illegal instruction( \(core dumped\))?\r?$
exit code:? 137\b|exited with code 137\b|[Ee]xit Code: +137\b
srun: error: \S+: tasks? [0-9,-]+: Killed
Received \d+ death signal, shutting down workers|SignalException: Process \d+ got signal: (2|15)\b|^KeyboardInterrupt\r?$
Setting OMP_NUM_THREADS environment variable for each process to be \d+ in default
Sending process \d+ closing signal 
failed \(exitcode: -?\d+\) local_rank: \d+ \(pid: 
(CANCELLED|CANCELED).* DUE TO TIME LIMIT|PBS: job killed: walltime|TERM_RUNLIMIT: job killed|DeadlineExceeded.*Job was active longer
(slurmstepd|srun): error: \*\*\* (JOB|STEP) \S+ ON \S+ CANCELLED AT \S+ \*\*\*|DUE [Tt][Oo] SIGNAL
failed \(exitcode: \d+\) local_rank: \d+ \(pid: \d+\) of binary
failed \(exitcode: ([2-9]|[1-9]\d|1[01]\d|12[0-5])\) local_rank: \d+ \(pid: \d+\) of binary
subprocess\.CalledProcessError: Command .* returned non-zero exit status [1-9]|exits with return code = [1-9]|Killing subprocess \d|mpirun detected that one or more processes exited with non-zero status|Primary job +terminated normally, but \d+ process returned
exits with return code = -7\b
[Ww]orld[ _]size \(?\d+\)? (is not|must be) (divisible by|equal to)|is not divisible by (the )?(tensor|pipeline|context|data|expert|sequence)[ _-]?(model[ _-])?parallel|divisible by (tp|pp|cp|dp|ep|sp|SP|TP|AutoEP)[ _-]size|total world size: \d+ .*is not divisible|Check batch related parameters. train_batch_size is not equal
must divide (the )?(stage size|world_size|distributed world size)|[Ii]nvalid \w+_size=\d+ for world_size|conflicts with (pp_size|tensor_parallel)|does not match TP world size|over sized with world size|(tensor|pipeline|context|data|expert)[ _-]parallel[ _-]size \S* ?(exceeds|is (larger|greater|bigger) than|must (equal|divide))
No available memory for the cache blocks|Free memory on device .* is less than desired GPU memory utilization|To serve at least one request with the models? max(imum)? seq(uence)? len|max seq len \(\d+\) is larger than the maximum number of tokens that can be stored in KV cache
EngineDeadError|Engine core initialization failed|WorkerProc initialization failed due to an exception in a background process|EngineCore (failed to start|encountered a fatal error)|died unexpectedly, shutting down executor
No available (shared memory broadcast )?block found in \d+ seconds?
(ActorDiedError|RayActorError): The actor died|actor died unexpectedly before finishing this task|WorkerCrashedError|Worker unexpectedly exits with a connection error
ray\.exceptions\.OutOfMemoryError|Task was killed due to the node running low on memory
WorkNCCL\(SeqNum=\d+, OpType=\w
WorkNCCL\(SeqNum=\d+, OpType=(ALLREDUCE|BROADCAST|REDUCE|_ALLGATHER_BASE|_REDUCE_SCATTER_BASE), NumelIn=\d
enforce fail at \S*pair\.cc:\d+\] op\.(preamble|length).*(Received data size doesn't match|\d+ vs \d)
Signal 6 \(SIGABRT\)|exits with return code = -6\b|exited on signal 6 
DefaultCPUAllocator: (can't allocate memory|not enough memory)|^(\[rank\d+\]: )?MemoryError(:|$)|numpy\.\S*ArrayMemoryError
(^|[>: ])(#?[0-4]|\[ ?[0-4]\]) +(0x[0-9a-f]+ (in )?)?(\S*lib[nr]ccl-net\S*\.so|nccl_(p2p|uct|ucx|sharp|net_ofi|ofi)_\w+ ?\()
(libuc[tp]\S*\.so\S*\(uc[tp]_\w+\+0x|^ *\d+ +0x[0-9a-f]{8,16} uc[tp]_\w+\(\) +\S+:\d)
RESOURCE_EXHAUSTED: (Out of memory|Failed to allocate request)|OOM when allocating tensor with shape
DEADLINE_EXCEEDED: Barrier timed out|Barrier timed out\. (Id|Barrier_id)
(UNAVAILABLE: |details = "?|RpcError: )(failed to connect to all addresses|connections to all backends failing)
Terminating process because the (JAX|XLA|coordination)\w* ?(distributed )?service (detected|encountered)
ssh not successful for host \S+:
One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks
\*\*\* stack smashing detected \*\*\*|\*\*\* buffer overflow detected \*\*\*|(^|[:>] ?)(double free or corruption|free\(\): (invalid (pointer|size|next size)|double free)|malloc\(\): (corrupted|invalid|memory corruption|unsorted|mismatching|smallbin)|malloc_consolidate\(\): |corrupted size vs\. prev_size|realloc\(\): invalid|munmap_chunk\(\): invalid)
(ibv_open_device\w*(\([^)]*\))?[ :]*(failed|error)|[Ff]ailed to open (IB|RDMA|ib|rdma) device|[Uu]nable to open device).*(errno|[ :(]-?\d+|[Pp]ermitted|[Dd]enied|memory|[Nn]o such|busy|error)
ibv_modify_qp failed with .*local GID .*remote GID 
mlx5_core \S+ .*mlx5_(cmd|core)\w*:\d+:\(pid \d+\): [A-Z_0-9]+\(0x[0-9a-f]+\) .*failed, status 
([Cc]ompletion|\b[Ww][Cc]\b|\bcqe?\b|\bCQE?\b|IBV_WC|work completion|poll_cq)[^,;]{0,60}(status|error|failed)[ :=(#]{1,3}(with |code |of )?\(?\d|== IBV_WC_SUCCESS\. [1-9]
(efa:(cq|ep_data|ep_ctrl|domain)|rxr_cq|efa_rdm)\S*.*err: \d+|NET/OFI Request \S+ completed with error\. RC: \d
return code = -?\d|exit(ed)? (with )?(status|code)[ :=]{1,6}-?\d|EXIT CODE: \d|EXIT STRING: |KILLED BY SIGNAL: \d|exitcode *[:=] *-?\d|(exited on|terminated by|killed by|Caught|caught|terminated with) signal \d|exited with (code|status) -?\d
hsa[ _](api )?(call|init\w*|error|status)\b.*\b(0x10[01][0-9A-Fa-f]|41[0-9][0-9])\b|HSA (call|error|status).*\b(0x10[01][0-9A-Fa-f]|41[0-9][0-9])\b|Call returned (4\d\d\d|0x10\w\w)
(\bcuda[A-Z]\w+|\bcu[A-Z][a-z]\w+|CUDA|Cuda|NVML)[^:]{0,40}(returned|[Ee]rror|[Ff]ailed|[Ff]ailure|status|code|result)[ :=(]{1,3}(with |code |error |status |result )?\(?\d{1,3}\b|non-zero status: \d+:? ?cu(da)?[A-Z]
--container-mounts: source path does not exist|bind source path does not exist|mount source \S+ doesn't exist|error mounting \S+ to rootfs at |enroot-mount: failed to mount: .*: (No such file|Permission denied|Not a directory)|could not add mount entry
enroot-aufs2ovlfs: failed to (set|create|remove|mknod|open).*: (Operation not supported|Operation not permitted|Permission denied)|failed to set opaque ovlfs whiteout|overlay.*is not supported over|'overlay' is not supported|while extracting .*(xattr|lgetxattr|lsetxattr)|lsetxattr .*: operation not supported
seccomp filter failed: (Function not implemented|Invalid argument)|failed to register seccomp filter|kernel lacks support for|Could not find kernel configuration|Kernel (version|option).*: (KO|not supported)|unknown filesystem type 'overlay'|kernel reported a bad superblock for squashfs
nvidia-container-(runtime-hook|runtime|toolkit|cli).*executable file not found|Command not found: nvidia-container-cli|exec: .*nvidia-container-\S+: .*(not found|no such file)
NVIDIA-SMI couldn't find libnvidia-ml\.so library
requirement error: unsatisfied condition: (cuda|driver|brand)|requirements not met: .*(cuda|driver)
nodes? are available: .*(untolerated taint|didn't match (Pod's )?node (affinity|selector)|Insufficient (cpu|memory|ephemeral-storage|pods)|node\(s\) were unschedulable|volume node affinity conflict|didn't tolerate)|is forbidden: exceeded quota
(failed to (setup|set up) (pod )?network for (sandbox|pod)|FailedCreatePodSandBox.*(network|cni|multus)|cni plugin not initialized|NetworkPluginNotReady|no networks found in /etc/cni/net\.d|failed to find plugin .* in path)
The node was low on resource: ephemeral-storage|node had condition: \[DiskPressure\]|NodeHasDiskPressure|Pod ephemeral local storage usage exceeds|EvictionThresholdMet.*(ephemeral|nodefs|imagefs)
nvidia-caps-imex-channels/\S*:? .*(no such file|not found)|IMEX channel \S+ not found
fuse: device not found, try 'modprobe fuse'|fusermount3?: (failed to open|.*Operation not permitted|.*[Nn]o such)|squashfuse.*(not found|failed)
unshare: unshare failed: Operation not permitted|cannot clone: (Operation not permitted|Invalid argument|No space left on device)|cannot re-exec process|newuidmap: .*(not permitted|not allowed|failed)|could not open /etc/sub[ug]id|no sub[ug]id ranges found for user
enroot-switchroot: failed to execute: \S+: No such file or directory
rootless containers not supported|user namespaces are not enabled in /proc/sys|setting `?user\.max_user_namespaces`? (to|is) 0
seccomp.*: Function not implemented|PR_SET_SECCOMP\S*: (Function not implemented|Invalid argument)|seccomp is not (supported|enabled) (in|by) (the|your) kernel
(unpack|extract|build|copy|writ|pull|commit)\w*\b.*: no space left on device
FATAL: .*([Ww]hile setting bind mount configuration: |[Ww]hile parsing bind path|container creation failed: (.*mount.* error: |unable to add \S+ to mount list: ))
Error changing the container working directory
nvidia-container-cli: mount error: .*(/sys/fs/cgroup/\S*devices\.allow|cgroup)
(could not select device driver|failed to (inject|discover).*(device|GPU))
error gathering device information.*/dev/(nvidia|kfd|dri|neuron|accel)
error gathering device information.*/dev/infiniband
nvidia-container-cli: device error: .*: unknown device
nvidia-container-cli: (initialization|mount|container|detection|ldcache|device) error: 
Insufficient (nvidia\.com/gpu|amd\.com/gpu|vpc\.amazonaws\.com/efa|rdma/\S|hugepages-2Mi)
(set_mempolicy|get_mempolicy|mbind|move_pages|numa_\w+).*(Operation not permitted|Function not implemented|EPERM)
nvml error: driver not loaded|Driver not initialized \(amdgpu not found in modules\)
nvml error: insufficient permissions
killed due to memory pressure|exceeds the memory usage threshold of \d
nvidia-container-cli: initialization error: load library failed: lib(nvidia-ml|cuda)\.so
exited on signal 9 \(Killed\)|terminated with signal SIGKILL
could not select device driver "(nvidia)?" with capabilities|[Uu]nknown (or invalid )?runtime( name:?| specified)?:? "?nvidia|failed to discover GPU vendor from CDI|unresolvable CDI devices nvidia\.com/gpu
URL https?://\S+ returned error code: (401|403|404|429)\b
pull access denied for |manifest (for \S+ not found|unknown)|toomanyrequests: |unauthorized: authentication required|repository does not exist or may require|requested access to the resource is denied
\b(ErrImagePull|ImagePullBackOff)\b|Back-off pulling image|Failed to pull image 
(mkdir: cannot create directory|touch: cannot touch) .{0,3}/\S*(enroot|pyxis)\S*: (Permission denied|No such file or directory|Read-only file system)|pyxis: couldn't (mkdir|open|chown|create)\b.*: (Permission denied|No such file or directory|Read-only file system)
(srun|sbatch|salloc): (unrecognized|unknown) option '?-?-?(no-)?container-
The process is killed by SIGKILL by OOM killer due to high memory usage
Could not find any (nv|rocm|NVIDIA|ROCm) (files|libraries) on this host
[Ff]ailed to create user namespace|maximum number of user namespaces exceeded|[Uu]nprivileged user namespaces? (is|are) (not|disabled)|clone.* user namespace.*(not permitted|No space left)|newuidmap.*(not permitted|failed)
could not open image \S+: .*permission denied|failed to retrieve path for \S+: .*permission denied
could not open image \S+: .*no such file|failed to retrieve path for \S+: .*no such file|enroot.*\[ERROR\] No such file or directory: \S+\.sqsh|pyxis: .*[Ii]mage file .*(not found|does not exist)
nvidia-container-cli(\.real)?: initialization error: (cuda error|driver (rpc )?error)
No valid EFA devices found
system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY|[Ee]rror \(?802\b
system has unsupported display driver|cudaErrorSystemDriverMismatch|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH|[Ee]rror \(?803\b
forward compatibility was attempted on non supported HW|cudaErrorCompatNotSupportedOnDevice|CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE|[Ee]rror \(?804\b
NVIDIA driver on your system is too old|unsatisfied condition: cuda|unsatisfied condition: driver
no kernel image is available for execution|cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU|CU(BLAS|DNN|SOLVER)_STATUS_ARCH_MISMATCH|is not compatible with the current PyTorch installation
cuMem(Create|ExportToShareableHandle|ImportFromShareableHandle).*(not permitted|NOT_PERMITTED|\b800\b)|CUDA_ERROR_NOT_PERMITTED.*cuMem(Create|ExportToShareableHandle|ImportFromShareableHandle)
nvidia-caps-imex-channels.*(No such|not |denied|fail)|(IMEX|imex).*(channel|daemon|domain).*(not |fail|missing|unavailable|DOWN|INVALID)
no CUDA-capable device is detected|cudaErrorNoDevice|CUDA_ERROR_NO_DEVICE|No CUDA GPUs are available
invalid device ordinal|cudaErrorInvalidDevice\b|CUDA_ERROR_INVALID_DEVICE\b
(devices are|device\(s\) is/are) busy or unavailable|cudaErrorDevicesUnavailable|CUDA_ERROR_DEVICES?_UNAVAILABLE|Neuron ?Core\(s\) not available
cu(da)?IpcOpenMemHandle.*(fail|error|return value)|hipIpcOpenMemHandle.*(fail|error)|[Ff]ailed to open CUDA IPC handle: |GTL DEBUG.*IpcOpenMemHandle: 
cu(da)?IpcGetMemHandle.*(fail|error|return value)
peer access is not supported|cudaErrorPeerAccessUnsupported|CUDA_ERROR_PEER_ACCESS_UNSUPPORTED|hipErrorPeerAccessUnsupported
CUDA out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|HIP out of memory|Triton Error \[\w+\]: out of memory|hipErrorOutOfMemory|hipErrorMemoryAllocation|(CUDA|HIP) (runtime )?error:? .{0,12}out of memory
operation not permitted when stream is capturing|cudaErrorStreamCapture\w
[Dd]river/library version mismatch|NVML/RM version mismatch|(NVML_ERROR_|NV_ERR_)LIB_RM_VERSION_MISMATCH|NVMLError_LibRmVersionMismatch
Failed to initialize NVML: Unknown Error|NVMLError_Unknown|[Nn][Vv][Mm][Ll]\w*( \w+)?[:(]? ?(ERROR_UNKNOWN|NVML_ERROR_UNKNOWN)
Failed to initialize NVML: Insufficient Permissions|NVML_ERROR_NO_PERMISSION|NVMLError_NoPermission|/dev/nvidia\S*: Permission denied
couldn.t communicate with the NVIDIA driver|NVML.*Driver Not Loaded|NVML_ERROR_DRIVER_NOT_LOADED
Found no NVIDIA driver
NVRM: (The NVIDIA probe routine was not called for \d+ device|No NVIDIA (GPU|devices|graphics adapter) (found|probed))|modprobe: FATAL: Module nvidia([-_](uvm|modeset|drm|current\S*|\d+\S*))? not found
API call is not supported in the installed CUDA driver|provided PTX was compiled with an unsupported toolchain|(cudaErrorCallRequiresNewerDriver|cudaErrorUnsupportedPtxVersion|CUDA_ERROR_UNSUPPORTED_PTX_VERSION)|CUDA Driver version found is \d+\. Minimum|requires CUDA driver \d+\.\d+ or later
CUDA driver is a stub library|cudaErrorStubLibrary|CUDA_ERROR_STUB_LIBRARY
uncorrectable ECC error|uncorrectable NVLink error|cudaErrorECCUncorrectable|cudaErrorNvlinkUncorrectable|CUDA_ERROR_(ECC|NVLINK)_UNCORRECTABLE
over nvlink or a hardware error|CUDA_ERROR_CONTAINED|cudaErrorContained
GPU is lost|ERROR_GPU_IS_LOST|GPU requires reset|ERROR_RESET_REQUIRED
GPU access blocked by the operating system|NVML_ERROR_OPERATING_SYSTEM
exclusive \(thread\) device already in use|cudaErrorDeviceAlreadyInUse
illegal memory access was encountered|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS|hipErrorIllegalAddress
CUDA unknown error - this may be due to|CUDA error: unknown error|cudaErrorUnknown|CUDA_ERROR_UNKNOWN|Cuda failure (999 )?'unknown error'
^No devices were found\r?$
cuMem(Import|ExportTo)\w*Handle.*([Ii]nvalid|fail|error)|error in cuMem(Import|ExportTo)\w*Handle
invalid device function|cudaErrorInvalidDeviceFunction|hipErrorInvalidDeviceFunction
Unable to determine the device handle for ([Gg][Pp][Uu]|gpu)
((Cuda|CUDA) failure|CUDA error|CUDA_ERROR|unhandled cuda error).{0,12}(801|operation not supported|NOT_SUPPORTED)
unspecified launch failure|cudaErrorLaunchFailure|CUDA_ERROR_LAUNCH_FAILED
peer mapping resources exhausted|cudaErrorTooManyPeers|CUDA_ERROR_TOO_MANY_PEERS
CUDA driver version is insufficient|: driver version is insufficient for CUDA runtime|cudaErrorInsufficientDriver
device kernel image is invalid|cudaErrorInvalidKernelImage|CUDA_ERROR_INVALID_IMAGE|hipErrorInvalidKernelFile|hipErrorInvalidImage|HIP (failure|error):? .{0,24}invalid kernel file
undefined symbol: (__nvJitLink|nvJitLink|cudnn|cublas|cusparse|cusolver|cufft|nvrtc)\w*|cuDNN version incompatibility|Loaded runtime CuDNN library: \S+ but source was compiled with|version [`']lib(cudnn|cublas|cusparse|nvJitLink)\S* not found|detected CUDA version \(\S+\) mismatches the version that was used to compile|Installed CUDA version \S+ does not match the version torch was compiled with
device >= 0 && device < num_gpus INTERNAL ASSERT FAILED|invalid literal for int\(\) with base 10: '(MIG|GPU)-
misaligned address|cudaErrorMisalignedAddress|CUDA_ERROR_MISALIGNED_ADDRESS|cudaErrorInvalidPc|cudaErrorIllegalInstruction|CUDA_ERROR_ILLEGAL_INSTRUCTION|an illegal instruction was encountered
MPS (client failed to connect to the MPS control daemon|server failed with recovery action|server is not ready to accept new MPS|client insufficient resources|client (was )?terminated)|between the MPS server and the MPS client failed|hardware resources required to support device connections have been exhausted|cudaErrorMps\w|CUDA_ERROR_MPS_\w|MPS: Failed to|nvidia-cuda-mps-(server|control)\S* (exited|died|crashed|failed)
device doesn't have valid Grid license|cudaErrorDeviceNotLicensed|CUDA_ERROR_DEVICE_NOT_LICENSED
OS call failed or operation not supported on this OS|cudaErrorOperatingSystem|CUDA_ERROR_OPERATING_SYSTEM
[Cc][Uu][Dd][Aa]\w*( \w+)? ([Ee]rror|[Ff]ailure)\b.*initialization error|cudaErrorInitializationError|CUDA_ERROR_NOT_INITIALIZED
[Cc][Uu][Dd][Aa]\w*( \w+)? ([Ee]rror|[Ff]ailure)\b.*(invalid resource handle|invalid device context|context is destroyed|cannot set while device is active|peer access (is already|has not been) enabled)|cudaErrorInvalidResourceHandle|cudaErrorDeviceUninitialized|cudaErrorContextIsDestroyed|CUDA_ERROR_(INVALID_HANDLE|INVALID_CONTEXT|CONTEXT_IS_DESTROYED)
[Cc][Uu][Dd][Aa]\w*( \w+)? [Ee]rror\b.*(invalid (argument|pitch argument|device symbol|host pointer|texture reference)|invalid copy direction|not correspond to a registered memory region|requested memory range is already mapped|graph update was not performed)|cudaErrorInvalid(Value|PitchValue|Symbol|HostPointer|MemcpyDirection)\b|CUDA_ERROR_INVALID_VALUE\b
[Cc][Uu][Dd][Aa]\w*( \w+)? [Ee]rror\b.*(invalid configuration argument|too many resources requested for launch|too many blocks in cooperative launch|the launch timed out|[Tt]ensor memory not completely freed)|cudaErrorInvalidConfiguration\b|cudaErrorLaunch(OutOfResources|Timeout)\b|cudaErrorCooperativeLaunchTooLarge|CUDA_ERROR_LAUNCH_(OUT_OF_RESOURCES|TIMEOUT)\b|OutOfResources: out of resource: 
operation failed due to a previous error during capture|legacy stream depend on a capturing|cudaErrorStreamCapture(Invalidated|Merge|Unmatched|Unjoined|Isolation|Implicit|WrongThread)
PTX JIT (compiler library not found|compilation was disabled)|cudaErrorJit(CompilerNotFound|CompilationDisabled)|CUDA_ERROR_JIT_(COMPILER_NOT_FOUND|COMPILATION_DISABLED)|shared object (symbol not found|initialization failed)|cudaErrorSharedObject(SymbolNotFound|InitFailed)|CUDA_ERROR_SHARED_OBJECT_\w
a PTX JIT compilation failed|[Cc][Uu][Dd][Aa]\w*( \w+)? ([Ee]rror|[Ff]ailure)\b.*named symbol not found|cudaErrorSymbolNotFound|cudaErrorInvalidPtx|CUDA_ERROR_(INVALID_PTX|NOT_FOUND)\b
initial startup self test failed|hardware stack error|cudaErrorHardwareStackError|cudaErrorStartupFailure|CUDA_ERROR_HARDWARE_STACK_ERROR|error has occurred in external entity outside of CUDA|cudaErrorExternalDevice|CUDA_ERROR_EXTERNAL_DEVICE
[Cc][Uu][Dd][Aa]\w*( \w+)? ([Ee]rror|[Ff]ailure)( \(?800\)?)?:? ['(]?operation not permitted['(). ]*$|cudaErrorNotPermitted\b
driver shutting down|cudaErrorCudartUnloading|CUDA_ERROR_DEINITIALIZED
CUDA driver initialization failed, you might not have a CUDA gpu|Can't initialize NVML|Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False
NVML_SUCCESS == .*INTERNAL ASSERT FAILED
CUDNN_STATUS_(SUBLIBRARY_)?VERSION_MISMATCH|CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED|CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING
(CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CUFFT|CUTENSOR)_(STATUS_)?(INTERNAL_ERROR|EXECUTION_FAILED|MAPPING_ERROR)
(CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CUFFT)_(STATUS_)?(INVALID_VALUE|BAD_PARAM|NOT_SUPPORTED)
NVMLError_LibraryNotFound|NVML Shared Library Not Found
cxi\d+\[\w*\]:? C_EC_(UNCOR_N?S|CRIT): C1?_\w+ error: ([a-km-oq-z]|l[a-km-z]|p[a-qs-z]|pr[a-hj-z])
cxi\d+\[\w*\]:? C_EC_DEGRD_NS: C1?_\w+ error: \w
C1?_HNI\w* error: (llr_eopb|llr_ack_nack_error|mac_rx_frame_err)\b|cxi\d+\[\w*\].{0,40}\bhigh BER port\b
cxi\d+\[\w*\]:? (CXI_EVENT_LINK_DOWN|SBL_ASYNC_ALERT_LINK_DOWN)|C1?_HNI_PML error: pcs_link_down\b
cxi_(core|ss1) [0-9a-f:.]+: (cxi\d+\[\w*\]:? )?(init_hw failed|cass_irq_init failed|deregistering device|disabling device|Incorrect Bar configuration|Cannot register the uC|Unknown uC platform|Invalid Cassini \d platform|NIC Version and system_type_identifier .{0,12}are inconsistent)|cxi_(core|ss1): probe of \S+ failed with error
C_RMU error: ptl_invld_vni\b
Check: link_check +Result: Fail
Check: link_flap_check +Result: Fail|Check: codeword_rate_check +Result: Fail
Interface \S+ link down
cxil_get_svc with \S+ and \w+ \d+ failed
Invalid VNI \d+ for \S+ and svc_id \d
Invalid vni: \d
Unable to allocate LNI
Security Issue: Using unrestricted service ID
Failed to find \S+ in SLINGSHOT_DEVICES
Failed to find service ID in SLINGSHOT_SVC_IDS
Failed to allocate CP, ret: -?\d+ VNI
Unable to allocate CMDQ, ret: -?\d
Failed to allocated? EQ: -?\d
EQ \d+ dropped event
H/W Event Queue overflow detected
Control EQ drops detected
Flow control EQ full
LE resources not recovered during flow control
Append err, priority LE exhaustion
Flow control UX LE resources
Flow control overflow no match
Flow control request list full
Software managed EP enabled
FC/SC stats - EQ full: \d
Unrecognized rx_match_mode: 
Unrecognized cq_policy: 
Increased rdzv_threshold size to: \d
Invalid rdzv_get_min
Requested request buffer size to small
Default CQ size invalid\. Setting to \d
Domain ATS: \d ODP: \d HMEM: \d Scalable: \d
Domain ATS: \d ODP: \d HMEM: 0
default monitor start failed
cxil_map failed: -?\d
ofi_hmem_dev_register \S+ failed
Optimized MR unavailable, fallback to standard MR
Insufficient resources for \S+ protocol, switching to
Allocate rget CMDQ failed
CXI Collectives are not supported
FI_OPT_CUDA_API_PERMITTED cannot be set when CUDA library
PCIe ATS not supported
FC/SC stats - EQ full: 0 append fail: 0
cxil_alloc_svc
SLINGSHOT_(VNIS|SVC_IDS|DEVICES) not found|VNI not found in SLINGSHOT_VNIS
cxil_fork_init\(\) failed
CXI retry handler not running
(error - |err: \d+, |rc:? ?=?)VNI_NOT_FOUND
(error - |err: \d+, |rc:? ?=?)(NO_SPACE|ENTRY_NOT_FOUND)\b
(error - |err: \d+, |rc:? ?=?|OFI poll failed[ :-]{1,6})UNDELIVERABLE\b
(error - |err: \d+, |rc:? ?=?|OFI poll failed[ :-]{1,6})(PTLTE_NOT_FOUND|PT_DISABLED|NO_MATCHING_CONN|NO_TARGET_CONN|NO_TARGET_TRS)\b
Failed to find valid default rgroup and vni|No valid VNIs for \S+ service ID|cxil_get_svc_list failed
Resource allocation failed: -?\d+: |cxip_alloc_lni returned|Unable to allocate (TX CMDQ|RX CMDQ|TGQ)|No room to allocate CP for VNI
mlockall\(MCL_CURRENT . MCL_FUTURE\) failed
(Request list|request|overflow) (buffer )?replenish failed
Missing (fabric manager (URL|authentication token)|collective job ID)|CURL multicast creation dispatch failed
Flow control triggered|Software endpoint mode required|FI_CXI_RX_MATCH_MODE=.{0,24}is required
completed with error.*\(UNDELIVERABLE\)
cxip_gen_auth_key failed: -\d
DeepEP timeout for dispatch receive
DeepEP dispatch RDMA sender timeout
DeepEP dispatch NVL receiver timeout
DeepEP error: CPU recv timeout
DeepEP NVLink barrier timeout
DeepEP Gin barrier timeout
DeepEP initialized with NCCL version: \d+\.\d+\.\d
Duplicate NCCL runtime found
NCCL compile-time and runtime versions must be the same
GPUDirect RDMA with CUDA VMM is not supported on this device
pidfd_getfd.*failed
destroy\(\) ?.*was not called before DeepEP
DeepEP (timeout check failed|combine RDMA \w+ timeout|combine NVL \w+ timeout|timeout for combine|error: timeout \((dispatch|combine|\w+) CPU\)|dispatch (forwarder|RDMA receiver|NVL sender) .*timeout)
Assertion failed: \S+\.cuh?:\d+, condition: |(Assertion|EPException) error (\S+(internode|intranode|buffer|runtime|layout|config|legacy|elastic)\S*):\d+ '
\[?NV_ERR_FABRIC_STATE_OUT_OF_SYNC|NVLink fabric state cached by the driver is out of sync
NV_ERR_FABRIC_MANAGER_NOT_PRESENT|Fabric Manager is not loaded \[
NV_ERR_NVLINK_FABRIC_(NOT_READY|FAILURE)
NV_ERR_GPU_IS_LOST|GPU lost from the bus \[NV_ERR
NV_ERR_RESET_REQUIRED|NV_ERR_GPU_IN_FULLCHIP_RESET
NV_ERR_LIB_RM_VERSION_MISMATCH|NVRM: API mismatch: the client
NV_ERR_NVLINK_(INIT|MINION|CLOCK|TRAINING|CONFIGURATION)_ERROR
NV_ERR_(ECC_ERROR|MEMORY_ERROR|MEMORY_TRAINING_FAILED|BROKEN_FB)\b
NV_ERR_(FLCN_ERROR|RISCV_ERROR|PMU_NOT_READY|SECURE_BOOT_FAILED|REJECTED_VBIOS|IRQ_NOT_FIRING)\b
NV_ERR_(INSUFFICIENT_PERMISSIONS|INVALID_LICENSE)\b
Check failed: .*\[NV_ERR_[A-Z_]+\] \(0x[0-9a-fA-F]{8}\) returned from
ibv_get_device_list returns total_device_cnt=\d
g_efa_selected_device_cnt=[1-9]
g_efa_selected_device_cnt=0\b
Device \S+ filtered out by FI_EFA_IFACE
Not an EFA device\. Will not initialize
ibv_open_device failed! errno: \d
FI_EFA_IFACE is empty
FI_EFA_TX_MIN_CREDITS was set to -?\d+, which is <= 0
env variable detected! The use of this variable has been deprecated and as such execution cannot proceed
FI_EFA_SET_CUDA_SYNC_MEMOPS env variable detected
EFA will not use SHM for intranode communication because FI_EFA_ENABLE_SHM_TRANSFER=0
Fork support requested but ibv_fork_init failed
Unable to register CUDA device buffer via dmabuf
FI_HMEM_CUDA_USE_DMABUF set to false
Failed to register CUDA buffer with the EFA device
\S+ P2P support is not available
requires p2p, unset FI_HMEM_DISABLE_P2P
No EFA RDMA read support, transfers using \S+ will fail
Unable to register MR of \d+ bytes: Cannot allocate memory
Unable to register MR of \d+ bytes: .*, flags
ibv_reg_dmabuf_mr is required for memory
requested but hardware does not support RDMA read
ibv_create_qp failed\. errno: 12
ibv_create_qp failed with sl \d
ibv_create_ah failed with EINVAL
ibv_create_ah failed! errno:? ?(22|-22)\b
ibv_create_ah failed! errno:? ?-?12\b
Failure to post internal receive buffers
prov_errno:? 4112\b
The peer of address \S+ becomes unresponsive
Unresponsive remote \(was previously responsive\)
No valid address handle at remote side
Remote feature mismatch
RX entries exhausted
Max number of shm AV entry \(\d+\) has been reached
Cannot open host id file
ibv_create_qp failed with sl \d+.*Retrying
Dropping CQE for QP
Unresponsive (receiver \(connection previously established|remote \(was previously responsive)
FI_EFA_USE_DEVICE_RDMA(=1)? was set (by user, but|to an invalid value)
fork support and huge pages is not
libfabric EFA provider is operating in|RDMAV_FORK_SAFE.*(will now abort|must be set)|requires setting FI_EFA_FORK_SAFE
GDR disabled on GDR-supported instance|NET/OFI .*([Uu]nsupported platform|unknown instance type)
Unable to write to EQ: .*\(-12\)
Unable to create extended CQ: Cannot allocate memory
cuPointerSetAttribute: CUDA_ERROR_NOT_SUPPORTED|unable to set memops for cuda ptr
EFA libfabric provider not detected
efa_device_construct\w* failed for device
(cannot|could not|unable to|[Ff]ailed to|[Cc]an't) (open|find|stat|access|read|load)\b.*[Nn]o such file or directory|\[Errno 2\] No such file or directory: |/\S+: (cannot open|[Nn]o such file or directory)
(/\S+['"]?:? .*|\[Errno 13\] |(open|mkdir|create|write|access|read)\w*\b.*)[Pp]ermission denied
[Nn]o such device( or address)?$|[Nn]o such device( or address)?[ ;,.)]
[Cc]annot allocate memory
[Rr]esource temporarily unavailable
[Nn]o space left on device
[Rr]ead-only file system
[Ii]nput/output error|Remote I/O error
[Cc]onnection refused|ECONNREFUSED
[Cc]onnection reset|[Bb]roken pipe|ECONNRESET|EPIPE\b
[Nn]etwork is unreachable|ENETUNREACH
[Hh]ost is down|EHOSTDOWN
[Ff]unction not implemented|ENOSYS\b
cannot open shared object file
undefined symbol: \w
[Ii]llegal instruction|SIGILL\b
[Ss]egmentation fault|SIGSEGV\b|[Ff]loating point exception|SIGFPE\b|\b[Bb]us error\b|SIGBUS\b|SIGABRT\b
^(\S+: )?Killed$|\bSIGKILL\b|[Ss]ignal 9\b
\b[Nn]o (\w+ )?(devices?|adapters?|NICs?|HCAs?|GPUs?|ports?) (were |was )?(found|detected|available|present)\b
fabric manager.*(don.t|doesn.t|does not|not) match.*driver
nvidia-fabricmanager.*(inactive|failed|dead|could not|not running|not found)|Fabric ?Manager.*(not running|failed to start)
Fabric\S*( State)? *: *In Progress|fabric.*state.*(not completed|in progress)
Kernel module "?ib_umad"? has not been loaded
NV_WARN_NOTHING_TO_DO
nvidia-fabricmanager\.service: (Failed with result|Main process exited, code=exited, status=[1-9])|Failed to start (NVIDIA fabric manager|nvidia-fabricmanager)
fabric manager config file item: ?\S+ has an invalid value|[Uu]nknown (config )?item .{0,60}fabricmanager\.cfg|failed to (open|parse) (fabric manager )?config file
Unable to connect to host engine|DCGM initialization error|unable to establish a connection to the specified host
^flight-recorder\[order\]
^flight-recorder\[size\]
^flight-recorder\[behind\]
^flight-recorder\[waits\]
^flight-recorder\[stuck\]
^flight-recorder\[open\]
^flight-recorder\[unbegun\]
^flight-recorder\[missing\]
^flight-recorder\[done\]
^ *Communicator ranks have different \w+ operation counts|^nccl-ras\[counts\]
Rank \d+ has launched up to operation \d+ -- GPU|\d+ ranks have launched up to operation \d
^ *Missing communicator data from \d+ rank|^nccl-ras\[missing\]
job process(es are| is) considered dead \(unreachable via the RAS network\)|^nccl-ras\[dead\]
^ *Communicator ranks have different status|^nccl-ras\[status\]
^nccl-ras\[error\]
^nccl-inspector\[late\]
^nccl-inspector\[even\]
No supported gpu backend found|You requested GPUs?: \[|But your machine only has: \[|No GPU/TPU found, falling back to CPU|No visible GPU devices|Failed to infer device type|requires a GPU \(not|Unable to initialize backend '(cuda|rocm|gpu)'|No visible GPU is found|libcuda\.so\S* cannot found|[Nn]o GPUs? (was |were )?(automatically )?(detected|found|available)|GPU device not found
Horovod has not been built with|Extension horovod\.\w+ has not been built|HorovodVersionMismatchError|jaxlib .*(is not|was not) (built|compiled) with|[Tt]orch (is )?not compiled with (CUDA|ROCm) (support|enabled)
Horovod has been shut down\. This was caused by an exception on one of the ranks|HorovodInternalError
Timed out waiting for tasks to start\. Please check connectivity|Timed out waiting for hosts to (register|start)
tasks are unhealthy \(stopped sending heartbeats\)|Coordination (service )?agent in error status|Barrier timed out\. (Id|Barrier_id)|The leader task was unhealthy|Terminating process because the (JAX distributed service|coordinator) detected fatal errors|Polled an error from coordination service|Coordination service has stopped|[Ss]hutdown barrier has failed|unexpectedly tried to connect with a different incarnation
RESOURCE_EXHAUSTED: Out of memory( while trying to allocate| allocating)|OOM when allocating tensor with shape.*by allocator GPU|larger than the available KV cache memory|Free memory on device .* is less than desired GPU memory utilization
Could not load dynamic library 'lib(cudart|cublas|cublasLt|cufft|curand|cusolver|cusparse|cudnn|nvinfer)\S*'|Cannot dlopen some GPU libraries
Unable to load the kernel module '?nvidia|Bad return status for module build on kernel|unsigned module loading is restricted|Loading of (unsigned )?module( with unavailable key)? is rejected|could not insert '(nvidia\w*|amdgpu|neuron)': (Required key|Key was rejected|Operation not permitted|Exec format|Unknown symbol)
Could not (register device plugin|contact Kubelet, retrying)|[Ff]ailed to register (device )?plugin with (the )?[Kk]ubelet|device plugin unable (to register with|connect to) Kubelet
(ORTE|PRTE|mpirun) has lost communication with a (remote )?daemon
OFI poll failed[^:]*:\d+:\w+:Input/output error - CANCELED
CapacityError|(insufficient|not have (enough|sufficient)|not enough) (capacity|resources available to fulfill)|Quota '\S+' exceeded|limit of \d+ allows for the instance bucket|AllocationFailed:
CERTIFICATE_VERIFY_FAILED|certificate verify failed|x509: certificate (signed by unknown authority|has expired)|SSL certificate problem
(urlopen error|NewConnectionError|\bConnectionError|Could not resolve (host|proxy)).*(name resolution|Name or service not known|nodename nor servname)|Could not resolve (host|proxy): 
No devices found\. Waiting indefinitely
sys files not found \(/sys/class/infiniband
osm_\w+: ERR [0-9A-F]{4}: .*([Bb]ind failed|Unable to register class|Unable to (open|bind)|[Nn]o (local )?ports?|[Cc]ould not)
HDF5-DIAG: Error detected in HDF5
Failed to load NCCL library from|Cannot find libnccl\.so|Failed to import NCCL library
doesn't support faster communication broadband via P2P or IB
memory capacity is unbalanced\. Some GPUs may be occupied|Error in memory profiling\. Initial free memory|when other processes sharing the same container release GPU memory
Not enough memory\. Please try to increase --mem-fraction-static|Not enough memory to (hold|load|allocate)|KV cache memory is not (enough|sufficient)|\bkv cache .*(out of memory|insufficient)
only supported on GPUs with compute capability|Minimum capability: \d+\. Current capability|No compiled \w+ for( CUDA)? (device|compute) capability|[Rr]equires (device|compute|GPU)[ _](compute )?capability|only supports? (Ampere|Hopper|Blackwell)|Unsupported (CUDA |GPU )?arch(itecture)?:? ?(sm_)?\d
fatal error: (Python|cuda\w*|cublas\w*|cudnn\w*|cusparse|cusolver\w*|curand\w*|nccl|mpi|numa|nvtx\w*)\S*\.h(pp)?: No such file|ld: cannot find -l(cuda|cudart|cublas|nccl|stdc\+\+|python\S*|mpi|nvrtc|aio)\b
ninja: build stopped: subcommand failed|Error building extension '|Error compiling objects for extension
scheduler (died|is dead).*Exit code: (-9|137)\b
RPC call to \w+ timed out|Watchdog timeout \(self\.watchdog_last|forward pass .*(watchdog|timed? ?out)
Received sigquit from a child process|(Scheduler|TokenizerManager|DetokenizerManager|DataParallelController) hit an exception|scheduler (died|is dead)\.
(WatchTasks|PollForError|RecordHeartbeat|[Hh]eartbeat)(Async)?[ (:].*UNAVAILABLE|CoordinationService/(WatchTasks|PollForError|Heartbeat)
unexpectedly tried to connect while it is already connected|Unexpected task registered with task_name=
GetKeyValue\(\) timed out with key: \w+:(local|global)_topology|Getting (local|global) topolog(ies|y) failed
This thread has been waiting for `?(initialize|acquire) clique|Expected \d+ threads to join the rendezvous, but (not all|only)
coordinator_address should be defined|Number of processes must be defined|The process id of the current process must be defined
Couldn't invoke ptxas|ptxas exited with non-zero error code|No PTX compilation provider is available|Couldn't find a suitable version of ptxas|libdevice not found at
Init torch distributed begin
Init torch distributed ends
[Cc]ustom ?[Aa]ll-?[Rr]educe is disabled because this process group spans across nodes
failed to configure FI_CXI_\S* environment variables due to prior conflicting settings
from fi_mr_reg(attr)?\(\) when binding segment|fi_mr_reg\w* for \w+ failed|gex_EP_BindSegment returning an error code|failed to bind segment|[Uu]nexpected error .* from ibv_reg_mr|ibv_reg_mr(_iova)? failed in
gdr_open.*(fail|error)|GDRCopy open call failed|gdrdrv.*(not |No such|fail|Permission denied)|GDRCopy.*(requested|enabled|required).*(not|fail)
cxil_map.*(write error|failed)
unable to open GDR driver|[Ii]s gdrdrv(\.ko| driver)? (installed and )?loaded
Unable to resolve hostname to a \(local\) address
(SO_ERROR|Gloo|connectFullMesh).*remote=\[(127\.|::1|localhost)|gloo/transport/\S+\] connect \[(127\.|::1)
Gloo connectFullMesh failed
Unable to find (address for|interface)|Unable to find interface for
IBV_WC_SUCCESS\. [1-9]\d* vs 0
gloo/transport/\S+\] connect \[[^\]]+\]:\d+: 
gloo/transport/\S+\] (Timed out waiting \d+ms for (recv|send) operation|Application timeout caused pair closure|Socket closed|Read timeout|Connection reset by peer)
installed in this system (is not supported by|requires use of the NVIDIA open|is supported through the NVIDIA)|does not include the required GPU System Processor
I/O region assigned to your NVIDIA device is invalid|BAR\d is 0M @ 0x0 \(PCI:
unexpected WPR2 already up, cannot proceed|the GPU is likely in a bad state and may need to be reset
Cannot initialize GSP firmware RM|failed to wait for GFW.BOOT|failed to wait for GFW boot complete
could not insert '?(nvidia|nvidia_uvm|nvidia-uvm|amdgpu|neuron)'?: |Module (nvidia|amdgpu|neuron)\S* not found|Key was rejected by service|Loading of (unsigned )?module (is )?rejected|unsigned module loading is restricted
kfd not supported on this ASIC|kfd kfd: .*not supported in kfd|is missing in supported_devices|kgd2kfd_probe failed
firmware load for amdgpu/\S+ failed with error|amdgpu\b.{0,60}[Ff]ailed to (load|get|request) (gpu_info )?firmware
amdgpu\b.{0,40}Fatal error during GPU init
fence wait loop timeout expired|unrecoverable state due to an unsuccessful queues preemption|MES failed to respon[ds]|HIQ MQD's queue_doorbell_id0 is not 0|Failed to evict process queues
amdgpu\b.{0,60}(no-retry|retry)? ?page fault \(src_id:
Unable to open /dev/kfd read-write: (Cannot allocate memory|Invalid argument|Bad address)
Unable to open /dev/kfd read-write: Resource temporarily unavailable
Could not (resolve Linux kernel version|locate Linux kernel version string)|Your kernel headers for kernel \S+ cannot be found|Bad return status for module build on kernel|modpost: GPL-incompatible module (nvidia|amdgpu)|Unable to find the (development tool|kernel source tree)|Failed to find NVIDIA driver source|FATAL: no NVIDIA driver generated|Unable to resolve RHEL version from kernel version
Could not unload NVIDIA driver kernel modules, driver is in use|An NVIDIA kernel module '\S+' appears to already be loaded|rmmod: ERROR: Module (nvidia\w*|amdgpu) is in use
^ *\| *(Memory|Memory Bandwidth|Memtest|Diagnostic|Pulse Test|Targeted (Stress|Power)|Stress|SM Stress|EUD Test|NVBandwidth|PCIe|Integration) *\| *Fail
INFO: task \S+:\d+ blocked for more than \d+ seconds
rocBLAS error: Cannot read .*(GPU arch|TensileLibrary)|hipErrorNoBinaryForGpu|No compatible code objects found for: ?gfx
^[ \t]*(Clocks (Event|Throttle) Reasons: )?HW Thermal Slowdown *: *Active
^[ \t]*HW Power Brake Slowdown *: *Active
CUBLAS_STATUS_(ALLOC_FAILED|NOT_INITIALIZED)|CUDNN_STATUS_(ALLOC_FAILED|NOT_INITIALIZED)|CUSOLVER_STATUS_(ALLOC_FAILED|NOT_INITIALIZED)
Unable to open /dev/kfd.*Permission denied|/dev/(kfd|dri/\S+).*Permission denied|is not member of .*(render|video).* group
Unable to open /dev/kfd.*No such file
Failed to get user name to check for (video|render) group
ROCk module is NOT loaded
no ROCm-capable device is detected|hipErrorNoDevice|No HIP GPUs are available
hipErrorNoBinaryForGpu|Unable to find code object for all current devices
Memory access fault by GPU node
HSA_STATUS_ERROR_OUT_OF_RESOURCES
[Aa]borting with error ?: ?HSA_STATUS_ERROR_OUT_OF_RESOURCES|HSA_STATUS_ERROR_OUT_OF_RESOURCES.{0,160}Available Free mem
HSA_STATUS_ERROR_MEMORY_(APERTURE_VIOLATION|FAULT)\b|The agent attempted to access memory beyond the largest legal address|Agent attempted to access an inaccessible address
HSA_STATUS_ERROR_INVALID_(ISA|ISA_NAME)\b
HW Exception by GPU node-\d+ .*GPU Hang|hipErrorECCNotCorrectable
HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception
hsa_init Failed, possibly no supported GPU devices
Failed to create memory for IPC|IPC memory creation failed|hipIpcGetMemHandle\b.*(invalid|fail|error|->[ ]*[1-9])
hipIpcGetMemHandle\b.*(invalid argument|hipErrorInvalidValue|[Ee]rror:? *1\b|-> *1\b)|Failed to create memory for IPC, failed with hsa_status: 4097
ROCk module (version \S+ )?is loaded
Incompatible kernel and userspace, 
Cannot (retrieve|register) Static function, error: 218\b|Cannot find Symbol for|hipErrorNoBinaryForGpu
hipErrorInvalidDevice\b
BUG: soft lockup - CPU|hard LOCKUP|Kernel panic - not syncing|rcu: INFO: rcu_\w+ (self-)?detected (expedited )?stall|kernel BUG at |BUG: (unable to handle|kernel NULL pointer)|Oops: [0-9a-f]{4} \[#1\]|general protection fault.*\[#1\]
(blk_update_request: )?(critical (medium|target) error|I/O error), dev (nvme|sd|vd|dm-|md)|Buffer I/O error on dev|nvme nvme\d+: (I/O .* timeout, (aborting|reset)|controller is down|Device not ready; aborting)|EXT4-fs error \(device |BTRFS (error|critical) \(device |XFS \(\S+\): (Metadata (corruption|I/O error)|Corruption|log I/O error|Filesystem has been shut down)
\w\[\d+\]: segfault at [0-9a-f]+ ip |traps: \S+\[\d+\] (general protection|trap invalid opcode)
NETDEV WATCHDOG: .*: transmit queue \d+ timed out|TX timeout detected
Port module event: module \d+, Cable unplugged
Port module event: module \d+, Cable plugged
(mlx5_core|bnxt_en|ice|i40e|igb|ixgbe|tg3|mlx4_en|qede|ionic|ena)\b.* ([Ll]ink [Dd]own|NIC Link is Down|Link is down)
(mlx5_core|bnxt_en|ice|i40e|igb|ixgbe|tg3|mlx4_en|qede|ionic|ena)\b.* ([Ll]ink [Uu]p|NIC Link is Up|Link is up)
link status definitely down
link status definitely up
SMU: I'm not done with your (previous )?command|SMU: response:0x\w+ for index|Failed to (export|get) SMU metrics table
failed to resolve session directory|session directory .*: (no such file|permission denied)
MountVolume\.(SetUp|MountDevice) failed for volume .*(mount failed|hostPath type check failed|timed out|driver name \S+ not found|Permission denied|not registered)|Unable to attach or mount volumes
amdgpu.*Poison is consumed|amdgpu.*RAS (ERROR|Intr triggered)
efa \S+ \S+: Failed to process command DEREG_MR
(PCIe Bus Error|AER): .*severity=Uncorrect|AER:.*Uncorrected \((Non-)?Fatal\)
AMD-Vi: Event logged \[IO_PAGE_FAULT|DMAR: \[DMA (Read|Write)|DMAR: DRHD: handling fault
nv(idia)?[_-]peer(_)?mem.*(failed|error|Unknown symbol|disagrees)|modprobe.*nvidia_peermem.*Invalid argument
amdgpu.*(GPU reset|ring \S+ timeout)|VRAM is lost!
amdgpu.*[Uu]ncorrectable hardware errors?
(mlx5_core|cxi_core|efa) .*(health compromised|command failed.*timeout|assert_var|fatal error)
ACSCtl:.*(ReqRedir\+|CmpltRedir\+)
NVRM:.*fallen off the bus|GPU has fallen off the bus
NVRM: (RmInitAdapter failed|GPU \S+: RmInitAdapter failed|.*GPU initialization failed)|NVRM: .*probe routine failed for \d+ device
NVRM: .*(GSP (firmware|ucode) (image )?.*(failed|not found|mismatch)|_?kgsp\w+: .*([Ff]ail|[Tt]imeout|[Tt]imed out)|RISCV_GSP|_issueRpcAndWait: rpcRecvPoll timedout)
NVRM: API mismatch
cannot be used for peer-to-peer DMA|PCIe P2P access from peer device \S+ is not supported
\bOut of memory: Kill(ed)? process|oom-kill:constraint=CONSTRAINT_(NONE|CPUSET|MEMORY_POLICY)\b
mlx5_core \S+.*[Ll]ink (down|DOWN)
AMD-Vi: Completion-Wait loop timed out
\b(task_numa_work|change_prot_numa|do_numa_page)\+0x
kernel[./]numa_balancing( ?[=:] ?|[ ]+)[123]\b
/(infiniband|infiniband_verbs|net)/[^ /]+/(device/)?numa_node[: ]+-1\b
PCI rejects atomics|PCIE atomic ops is not supported
(nvidia_peermem|nv_peer_mem): (disagrees about version of symbol|Unknown symbol) ib_|could not insert '?(nvidia_peermem|nv_peer_mem)'?: (Invalid argument|Unknown symbol)
process_vm_(readv|writev).*(Operation not permitted|EPERM)|Read -1, expected \S{1,24}, errno ?= ?1\b
CMA support is not available due to restrictive ptrace settings
\bEMFILE\b|[Tt]oo many open files|\bENFILE\b
systemd-oomd(\[\d+\])?: Killed \S+ due to memory|earlyoom(\[\d+\])?: .*sending SIG(TERM|KILL) to process
AER: Multiple Corrected error( message)? received
modprobe: (FATAL|ERROR): Module (nvidia[-_]peermem|nv_peer_mem) not found
modprobe: (FATAL|ERROR): Module (mlx[45]_(core|ib)|ib_(core|uverbs|umad)|bnxt_re|irdma|efa|rdma_(cm|ucm)) not found
modprobe: (FATAL|ERROR): Module gdrdrv not found
[0-9a-f]{2}:[0-9a-f]{2}\.0 \S*(VGA compatible controller|3D controller|Display controller|Processing accelerators)\S*( \[\w+\])?: .*\(rev ff\)
[0-9a-f]{2}:[0-9a-f]{2}\.\d (Ethernet|Infiniband|InfiniBand|Network|Fabric) controller( \[\w+\])?: .*\(rev ff\)
did you (set the docker default runtime to|configure the NVIDIA Container Toolkit)|Incompatible (strategy|platform) detected
could not load NVML library|NVML.{0,24}ERROR_LIBRARY_NOT_FOUND|nvml init failed: (Library Not Found|ERROR_LIBRARY)
no runtime for \S{0,2}nvidia\S{0,2} is configured|RuntimeHandler \S{0,2}nvidia\S{0,2} not supported
failed to add device rules: |bpf_prog_query\(BPF_CGROUP_DEVICE\) failed
XidCriticalError: Xid=\d+ on Device=
no healthy devices present; cannot allocate unhealthy devices|requested number of devices unavailable for \S+ Requested: \d+, Available: \d
[Nn]o Rdma Devices were found for resource|missing RDMA device spec for device |no devices in device pool, creating empty resource server|exposing devices: +\[\]|Error: empty or invalid pf netdevice configuration
detection error: nvml error: unknown error|getting device handle for index '?\d+'?: Unknown Error
The node was low on resource: memory|System OOM encountered, victim process|NodeHasInsufficientMemory|node had condition: \[MemoryPressure\]
Insufficient (nvidia\.com/(gpu|mig-\S+)|amd\.com/gpu|rdma/\S+|vpc\.amazonaws\.com/efa|aws\.amazon\.com/neuron\w*)
Back-off restarting failed container|CrashLoopBackOff
Multi-Attach error for volume|volume .* is already (exclusively attached|used by pod)
plugin type=\S+ (name=\S+ )?failed \(add\)|SRIOV-CNI failed to|(IPAM|ipam) .*(no (more )?(addresses|IPs?)|exhausted|failed to allocate)
invalid MIG configuration|must be configured with the same migEnabled value|more than one MIG device type present
Host key verification failed|Permission denied \((publickey|password|gssapi|keyboard)|ssh: connect to host \S+ port \d+: |ssh_exchange_identification: |kex_exchange_identification: |ssh: Could not resolve hostname 
\b(orted|prted|hydra_pmi_proxy|hydra_bstrap_proxy): (command not found|No such file)|/(orted|prted|hydra_pmi_proxy): No such file or directory
There are not enough slots available in the system|All nodes which are allocated for this job are already filled|Not enough slots .{0,20}available
There was an error initializing an OpenFabrics device|No preset parameters were found for the device that Open MPI|Open MPI 4\.0 and later, infiniband ports on a device
'ssh .{1,200}returned non-zero exit status 255
UNAVAILABLE: .{0,20}DNS resolution failed for|C-ares status is not ARES_SUCCESS
UNAVAILABLE: Task \S+ heartbeat timeout|The following tasks are unhealthy \(stopped sending heartbeats\)
unable to connect to server \S+ at port \d+ \(check for firewalls!\)|HYDU_sock_connect .*unable to connect from \S+ to \S+ \((Connection (refused|timed out)|No route to host)
UI version string does not match proxy version|PRTE did not receive version information when connecting between two
REMOTE HOST IDENTIFICATION HAS CHANGED|Offending \S+ key in \S+known_hosts|ssh exited with exit code 255
read (bool) var \w+=
read int var \w+=-?\d
read (string|int|bool|long) var \w+=
:core:core:fi_param_get_?\(\):\d+<\w+> read (string|int|bool|long) var \w+=
failed to parse bool var \w+=
Opened fabric: \S
Using \S+ provider \d+\.\d+, path:\S
registering provider: (efa) 
registering provider: (cxi) 
fi_getinfo: provider (efa) output empty list
fi_getinfo: provider (cxi) output empty list
filtered by provider include/exclude
misspelled provider: \S+, you may want
Requested version is newer than library
dlopen\(\S+-fi\.so\): 
Default memory monitor is: \S
Failed to start \S+ memory monitor
userfaultfd monitor not available
kdreg2 monitor not available
memhooks monitor not available
Failed to open \S+ for monitor kdreg2
syscall/userfaultfd (Operation not permitted)
Memory monitor uffd started
Kdreg2 memory monitor started
MR cache disabled for \S+ memory
Hmem iface FI_HMEM_\w+ not supported
Failed to initialize hmem iface \S+: 
unknown HMEM interface specified in FI_HMEM
Failed to dlopen libcudart\.so
Failed to dlopen libcuda\.so\.1
Unable to dlopen libhsa-runtime64\.so
Number of CUDA devices detected: \d
cuda dmabuf support status: 1
Hmem iface FI_HMEM_(ZE) not supported
Unsupported capabilities
Requesting provider \S+, skipping
Skipping util;\S+ layering
variable \S+=<not set>
ofi_monitor_subscribe\(\).*Failed \(ret = -?\d+\) to monitor
(userfaultfd|uffd).*(Operation not permitted|Permission denied|not available|failed)
MR cache init failed.*MR caching disabled
provider \S+ is unknown, misspelled or DL provider
fi_getinfo: -61\b|fi_getinfo\(\) (call )?failed.*(-61|No data available)
(CQ|completion queue|Event Queue).*(overrun|overflow)
\b(ofi_import_monitor_notify|ofi_intercept_(handler|mmap|munmap|mremap|madvise|brk|shmat|shmdt)|ofi_monitor_(notify|unsubscribe)|ofi_uffd_handler)\b
userfaultfd_(event_wait_completion|unmap_complete|remove)\b
\b(__lll_lock_wait|pthread_mutex_lock|futex_wait_queue\w*|ofi_genlock_lock|pthread_spin_lock)\b.*( from | at |\+0x|\()
\b(cuMemHostRegister|cudaHostRegister|hipHostRegister|hsa_amd_memory_lock|(cuda|rocr|ofi_hmem|cxip?)_host_register|ofi_hmem_host_register)\w*\b.*( from | at |\(|\+0x)
\bcxip_\w+ ?(\(|\+0x| at )
fi_getinfo: provider efa (output empty list|returned -61)
fi_getinfo: provider cxi (output empty list|returned -61)
Failed to dlopen libnvidia-ml\.so(\.1)?\.?\r?$
Failed to initialize hmem iface FI_HMEM_(CUDA|ROCR|ZE|NEURON|SYNAPSEAI)
\bfi_info\b.* (-p|--provider)[ =]?cxi\b
Requested OFI provider .* is not available|re-compile libfabric with support for
PSM[23]? (can't open \w+ unit|no hfi units are available|was unable to open an endpoint)|\bhfi_userinit: .*failed|psm[23]?_ep_open (returns [1-9]|failed)
Since (psm2|psm3|psm|opx|gni|usnic) can be used, \S+ has been skipped
atl_ofi\w*\.cpp:\d+ .*(fi_getinfo error: ret -61, providers 0|can't (create|find|init) .{0,20}provider|can not open network providers|open_providers failed)
failed to initialize ATL\b|atl_ofi\w*\.cpp:\d+ init_transport: 
fi_getinfo: provider \S+ returned -61\b
version .FABRIC_\d+\.\d+. not found \(required by \S*(nccl-net|nccl-ofi|libnccl|libfabric-net|rccl-net)
-fi\.so.*version .FABRIC_\d+\.\d+. not found
(undefined symbol|symbol lookup error).*\bnccl(Comm|Mem|Group|Get|Red|All|Broad|Send|Recv|Dev|Win|Config|Reg|Dereg|Put|Signal|Wait)
libr?n?ccl\.so\.\d+: (undefined symbol|version)
libr?n?ccl\.so\.\d+: cannot open shared object file
\blib(cuda|nvidia-ml)\.so\S*: cannot open shared object file
lib(amdhip64|hsa-runtime64|rocm_smi64|amd_comgr|hiprtc|rocblas|MIOpen|rccl)\.so\.\S+: cannot open shared object file
version .(hip|HIP|ROCR|rocm_smi)_\d\S*. not found
libfabric\.so\.1: cannot open shared object file
libcudart\.so\S*: cannot open shared object file
libmpi_gtl_\w+\.so\S*: cannot open|GTL library is not linked|GPU_SUPPORT_ENABLED is requested
libpmix\.so\.\d+: cannot open shared object file
libibverbs\.so\S*: version `IBVERBS_\S+ not found
lib(rccl|MIOpen|amdhip64|hip\w+|roc\w+|torch_hip)\.so\S*: undefined symbol: \S*(hip|hsa_|roc)
version .FABRIC_\d+\.\d+. not found \(required by \S*(-fi\.so|fi_\w+|libmpi|libopen|mca_)
\blib(uc[pstmc]|ucs_signal|fabric|ibverbs|rdmacm|ibumad|mlx5|efa|cxi|mpi|open-(rte|pal)|pmix|prrte|hwloc|event\w*|munge|nccl|rccl|cudart|cublas\w*|amdhip64|hsa-runtime64|numa|nl-\S+|psm2|psm3|infinipath|gdrapi|xpmem|lustreapi|slurm\w*)\S*\.so[.0-9]* => not found
\blib(hwloc|nl-(route-)?3|nl-genl-3|numa|efa|mlx[45]|bnxt_re|cxi|cxiutils|psm2|psm_infinipath|opa\w*|gdrapi|xpmem|json-c|ucp|uct|ucs|ucm|sharp\w*|curl|lustreapi|rdmacm|ibumad)\.so\S*: cannot open shared object
\blib(mpi|mpi_cray|mpicxx|mpifort|open-rte|open-pal|oshmem|mpi_gnu_\d+)\w*\.so\S*: cannot open shared object
\blib(cuda|nvidia-ml)\.so(\.1)?: cannot open shared object
(\.ukdb|\.udb|kern_db|MIOpen).*(malformed|disk I/O error|database is locked|locking protocol|busy)
(miopen|MIOpen).*\.(ufdb|udb|ukdb)\S*.*(No such file|Stale file|rror)|(No such file|Stale file).*(miopen|MIOpen)\S*\.(ufdb|udb|ukdb)
Permission denied.*/[^ ]*miopen|([Mm][Ii][Oo]pen).*(Permission denied|Read-only file system|unable to open database file|attempt to write a readonly database)
open memvfs: 
(MPIR_pmi_init|MPIDI_\w*PMI|PMI_Init|pmi_proxy|hydra_pmi_proxy).*(fail|error|mismatch|wrong)|PMI wire version|PMI version mismatch
(MPIDI_OFI|MPIDI_OFI_\w+|OFI).*(fi_getinfo|get provider info|OFI get endpoint).*(No data available|failed)|OFI addrinfo\(\) failed
MPI startup\(\): libfabric version: 1\.[0-7]\.
MPICH suspects a hang due to completion queue exhaustion
Invalid rank has value \d+ but must be nonnegative and less than 1\r?$
OFI .*domain.*failed.*Function not implemented
\.: ?(gethostbyname|gethostname|MPL_get_sockaddr) failed|: gethostbyname(_ex)? failed( for|,)
The network interface, "[^"]*", specified in MPI\w+_IFACE was not found|Only one of MPI\w+_INTERFACE_HOSTNAME and MPI\w+_NETWORK_IFACE
unable to connect to \S+ on port \d+, |unable to connect to rank \d+ using business card|Unable to establish connection to (process|rank \d)|Communication error during connect sequence|: connect failed - 
\.: ?(unable to (allocate|attach to|open a) shared memory|unable to (open shared memory object|resize the shared memory object) \S+|Shared memory subsystem unable to allocate|Unable to (allocate|get) shared memory)
process not on the same host \(\S+ != \S+\)
\.: ?(gpu_init failed|mpl_ze_init_device_fds failed)
\.: ?(Communication error with rank \d|connection closed by peer|socket closed)
OFI (fi_|call )?(fabric|domain|endpoint|getinfo|av|cq|ep|addrinfo)\S* ?.*(failed|failure).*ofi_init\.[ch]|OFI fi_\w+ (\w+ )?failed \(ofi_init|OFI addrinfo\(\) failed
NCCL version \d+\.\d+\.\d
cudaDriverVersion \d
Bootstrap: Using \S+:\S
Bootstrap : Using \S+:[0-9a-fA-F.:]+<\d+>
Bootstrap ?: Using.*fe80:
Bootstrap : no socket interface found
NET/Socket : No usable listening interface found
NET/Socket : no interface found
no device found (matching|after excluding) .*NCCL_OOB_NET_IFNAME
No interface found in the same subnet as remote address
with family \d+ is neither AF_INET
Invalid NCCL_COMM_ID
error encountered when getting address info
Bootstrap Root : mismatch in
Bootstrap Root : rank \d+ of \d+ ranks has already checked in
connect to \S+ returned No route to host
connect to \S+ returned Connection refused, exceeded error retry count
connect to \S+ returned Connection timed out
returned .*, retrying \(\d+/\d+\) after sleep
socketPollConnect: exceeded timeouts
Call to connect returned Connection refused, retrying
Connection closed by remote peer
Call to recv from \S+ failed : Connection reset by peer
recv from \S+ failed : Connection timed out
socket magic mismatch
wrong magic [0-9a-f]+ != [0-9a-f]
Message truncated : received \d+ bytes instead of \d
message truncated : receiving \d+ bytes instead of \d
Mismatched NCCL version detected
\b[A-Z]+_[A-Z0-9_]+ set by environment to 
Invalid value \S+ for \S+, using default
Comm config netName reset to NCCL_NET=
comm 0x[0-9a-f]+ rank \d+ nranks \d+ .*Init START
comm 0x[0-9a-f]+ rank \d+ nranks \d+ .*Init COMPLETE
Init timings - .*total \d+\.\d
Detected mixed local Net device counts
[Nn]o algorithm/protocol available for function
Enabled NCCL Func/Proto/Algo Matrix
Stack size limit .* is unsafe
Unrecoverable error detected: malloc
Using network \S
Using network Socket
Using network (AWS )?Libfabric
Successfully loaded external network plugin \S
Initialized NET plugin \S
Failed to initialize NET plugin \S
Failed to initialize any NET plugin
Assigned NET plugin \S+ to comm
External network plugin \S+ is unsupported
ncclNetPlugin symbol \(>= v5\)
NET/Plugin: Using internal network plugin
Disabling external plugins
TUNER/Plugin: Using \S
External tuner plugin \S+ is unsupported
Split shares resources, but parent comm netName
NET/Socket : Using \[\d+\]
NET/Socket: Using \d+ threads and \d+ sockets per thread
Could not get speed .*Defaulting to \d+ Gbps
NET/IB : Using \[\d+\]\S+:\d+/
NET/IB : Using .*; OOB lo:127
NET/IB : No IP interface found
NET/\S+ : GPU Direct RDMA Enabled for HCA
GPU Direct RDMA Enabled for GPU \S+ / HCA
GPU Direct RDMA Disabled for GPU \S+ / HCA
DMA-BUF is available on GPU device \d
/\d+(\(\d+\))?/GDRDMA
via NET/\S+/\d+(\(\d+\))?(/Shared)?\r?$
via NET/Socket/\d
Connected all rings, use ring PXN \d GDR \d
Connected all rings, use ring PXN \d GDR 0
PXN Disabled as plugin is v4
Got completion from peer .*status=[^()]*\(12\)
Got completion from peer .*status=12\b
Got completion from peer .*status=[^()]*\(?4\b
Got completion from peer .*status=[^()]*\(?10\b
Got completion from peer .*status=[^()]*\(?5\b
NET/IB : \S+:\d+ async fatal event: 
GID table changed
Attempted to connect incompatible devices
Unable to use GIN: Peermem is not supported
posted incorrect receive info
Failed to open libgdrapi
gdr_pin_buffer\S*\(.*failed
remote FLID configured as zero
via P\dP/CUMEM
via P2P/IPC
via P2P/direct pointer
via P2P/indirect/
via SHM/direct
via P2P/MNNVL
nRanks \d+ nNodes \d+ localRanks \d+ localRank \d+ MNNVL \d
No transport found for rank \d
Could not enable P2P between dev
Legacy IPC not supported
P2P is disabled between NVLINK connected GPUs
failed to peer with device \d
cudaIpcGetMemHandle failed
failed to extend /dev/shm/nccl-\S+ to \d+ bytes.*No space left
failed to extend /dev/shm/nccl-\S+ to \d+ bytes
fallocate: Failed to extend .*retrying
failed to create shared memory file .*Permission denied
Error while creating shared memory segment \S+ \(size \d+\)
cuMem host allocations do not appear to be working
UDS: Sending data over socket \S+ failed
NVLS multicast support is available on dev
NVLS multicast support is not available on dev
Failed to bind NVLink SHARP \(NVLS\) Multicast memory
NCCL_NVLS_ENABLE has been set to .*1.*same NVML device
Connected NVLS tree
MNNVL 1 cliqueId [0-9a-f]+ cliqueSize \d
MNNVL .*is available but not working
Symmetric VA size=\d+GB
Symmetric memory is not supported\. cuMemEnable \d
\[Symmetric\]: \d+ Bytes -> Kernel 
Symmetric registration is not supported in this communicator
Communicator does not support symmetric memory
Window address must be suitably aligned
Multicast support requested for team but none available
NCCL library is too old\. This application was compiled with
User requested GIN but not all ranks
NCCL_TOPO_FILE set by environment to \S
Loading topology file \S
WARN Attribute \w+ of node \w+ not found
Could not open XML topology file
XML Topology has wrong version
could not find CPU close to GPU
Could not find any local path from gpu \d+ to net
Topology detection : could not read \S+, ignoring
is not a PCI device .*Attaching to first CPU
NVLink target \S+ not visible, assuming NVSwitch
Fusing NET devices from different NUMA domains
Continuing in spite of a RAS initialization error
NCCL version mismatch with remote peer
Cannot initialize CollNet, using point-to-point network instead
Failed to open libnvidia-ml\.so\.1
communicator was revoked
TUNER/Plugin: Could not find:
PROFILER/Plugin: Could not find:
(GIN)/Plugin: Could not find:
ncclOsDlsym\(nccl\w+Plugin_v\d+\) failed: .*undefined symbol
Failed to find ncclCollNetPlugin
Failed to initialize NET plugin IB
Failed to open libmlx5\.so
dlvsym failed on \S+ - .*version
returned Connection refused, retrying \(\d+/
Symmetric memory is not supported\. cuMemEnable
Connection closed by localRank \d
RAS .*socket closed by the client
Got (non-fatal )?async event ?: (port active|path migrat|communication|send queue|LID change|P_Key|SM change|last WQE|client rereg|SRQ limit|GID table)
Error: network .*not found|NCCL WARN .*network .*not found
(Socket creation failed|Call to socket failed).*Address family not supported
(posix_fallocate|ftruncate|fallocate|mmap).*failed ?:.*No space left on device
(shm_open|create shared memory file|/dev/shm/\S+).*(Permission denied|Operation not permitted)
(shm_open failed|open shared memory file|shared memory segment .*failed).*No such file or directory
nvls\.cc:\d+.*Cuda failure
nvls\.cc:\d+ -> [1-7]
Failed to find reverse path from remNode
Could not find real path of( ?$| /sys/class/(pci_bus/[0-9a-e]|infiniband/))
XML Import Channel : dev \d+ not found
Got completion.* (with )?(error 12\b|status=12\b)
Got completion.* (with )?(error 4\b|status=4\b)
Got completion.* (with )?(error 10\b|status=10\b)
Got completion.* (with )?(error 1\b|status=1\b)
ibv_modify_qp failed with (error |\d+ )?No such device
ibv_modify_qp failed with (error |\d+ )?No data available
ibv_modify_qp failed with (error |\d+ )?(Connection timed out|Network is unreachable|No route to host)
ibv_modify_qp failed with (error |\d+ )?Invalid argument
Call to ibv_open_device failed|Unable to open device
ibv_reg_(mr|dmabuf_mr)\S* failed with (error |\d+ )?(Bad address|Operation not supported)
ibv_reg_(mr|dmabuf_mr)\S* failed with (error |\d+ )?Invalid argument
ibv_reg_mr\S* failed with (error |\d+ )?Cannot allocate memory
ibv_reg_dmabuf_mr\S* failed with (error |\d+ )?Cannot allocate memory
(NET/Socket|Bootstrap) ?: Using.*:169\.254\.
connect to (\S+ )?(169\.254\.|\[?fe80:)
(NET/Socket|Bootstrap) ?: Using.*\](veth|docker|virbr|br-|cni|flannel|cali|tunl|vxlan|podman)
(Bootstrap|NET/Socket) ?: Using (\[0\])?lo:127\.|NET ?: Using interface lo:127\.
(NET/Socket|Bootstrap) ?: Using (veth|docker|virbr|br-|cni|flannel|cali|tunl|vxlan|podman)
[Cc]onnect to (\S+ )?(\[?::1|127\.\d+\.\d+\.\d+)\S* .*(exceeded|failed|timed out)
Call to connect (timeout|failed)|Call to connect.*timed out|socket(StartConnect|PollConnect): Connect to \S+ (failed|returned)
Call to bind failed.*Cannot assign requested address
(accept|socket|Socket creation|shm_open|open|pipe|epoll_create|eventfd)\S* ?(failed)? ?:?.*Too many open files
ncclRemoteError|remote process exited or there was a network error
ncclSystemError|unhandled system error
ncclInternalError|internal error - please report this issue to the NCCL|NCCL [Ee]rror 3\b
ncclUnhandledCudaError|unhandled cuda error
Connected all rings
Connected all trees
Init COMPLETE
rank \d+ nranks \d
\b[A-Z]+_[A-Z0-9_]+ set (by environment )?to 
via NET/(AWS )?(Libfabric|OFI)/\d
NCCL version \d+\.\d+\.\d
Using network \S
localRanks \d+ localRank \d
NVLS.*(bind|multicast).*(failed|error)|cuMulticast\w+.*(failed|error)
Failed to find ncclNetPlugin_v\d+ symbol
NET/Plugin ?:.*Loaded net plugin|Using network |Initialized NET plugin|Successfully loaded external network plugin
NET/Plugin ?: ?(Could not find:|No plugin found|Plugin load).*libnccl-net
libnccl-net\S*.*: (\S*/)?lib([^n /]|n[^c /]|nc[^c /]|nccl\.)[^ /]*\.so[^ /]*: cannot open shared object file|NET/Plugin.*lib(fabric|cudart|hwloc|nl)\S*\.so\S*: cannot open
HINT: .*(ACS|IOMMU)
mismatched physical devices between local|rail mismatch
P2P is disabled between connected GPUs
nNodes 1 localRanks
memory_peers/nv_mem\S*: No such file
NET/(IB|Libfabric|AWS Libfabric|OFI|gIB) ?: GPU Direct RDMA Disabled for HCA
# Avg bus bandwidth
Error while attaching to shared memory segment
\] -> \d+\[\w+\]( \[\w+\])? via 
NET/IB : Using \[0\]\S
NET/Plugin ?: Loaded net plugin
(send|receive)\] via NET/IB\w*/\d+(\(\d+\))?(/Shared)?\r?$
(send|receive)\] via NET/IB\w*/\d+(\(\d+\))?/GDRDMA
transport/shm\.cc:\d+ NCCL WARN Cuda failure \d* ?'(peer access is not supported|invalid (argument|resource handle|device ordinal)|operation not (supported|permitted)|unknown error)
NET/IB : No device found
No suitable space found to accommodate size=
WARN Call to ibv_(reg_mr|create_qp|create_cq|create_comp_channel|alloc_pd) failed ?\r?$
(Bootstrap|NET/Socket|NET) ?: Using (interface )?.*:172\.17\.\d+\.\d+<
NET ?: Using interface \S+:fe80:
failed to open CUDA IPC handle : .*(peer access is not supported|invalid device|invalid resource handle)
enqueue\.cc:\d+ .*named symbol not found|Cuda failure '?named symbol not found
NET/IB ?: Using .*\d/(IB\b.*\d/RoCE|RoCE\b.*\d/IB\b)
(Cuda|CUDA|HIP) failure( \d+| \S+:\d+)? '?out of memory|Failed to CUDA (host )?(calloc|malloc|alloc)( async)? \d+ bytes
(open|read) failed in ncclIbRoceGetVersionNum
Net : No valid (<IPv4_or_hostname>:<port> pair|\[IPv6\]:port pair) found
transport/p2p\.cc:\d+ NCCL WARN Cuda failure( \d+)? '(invalid device ordinal|invalid resource handle|peer access is not supported|mapping of buffer object failed)
NCCL library is not backwards compatible\. This application|The application was compiled with too old version of NCCL
Could not open XML graph file
NCCL WARN (XML (Parse|Mismatch|Graph has wrong version)|Error : XML parser is limited)
Attempted to merge incompatible devices|Remote \S+ device is incompatible with the local
async fatal event on (CQ|QP|SRQ)
Failed to (find|open) CUDA library|Failed to open libcuda\.so
unlink shared memory /dev/shm/nccl-\S+ failed, error: No such file
UDS: Receiving data over socket
Call to send to \S+ failed : (Broken pipe|Connection reset)
[Cc]onnect to (\S+ )?172\.17\.\d+\.\d+<\d+> (failed|returned)
NCCL WARN Cuda failure 800 'operation not permitted
\bNCCL_[A-Z0-9_]+ set by environment to ["']
NET/Socket ?: Using \[\d\]
NCCL_SOCKET_IFNAME set by environment to [\^=]?\w+[ ;|]+ ?[a-z]+\d
NCCL WARN Call to (write|read|recv|send) failed ?: (Connection reset by peer|Broken pipe)
Unrecognized element token "
\](veth|docker0|virbr|br-|cni|flannel|cali|podman)[^: ]*:[0-9a-f.:]+(%\w+)?<0>
ncclMaxSharedMem \d+ exceeds device/fn maxSharedMem
NCCL INFO Plugin Path : /
Invalid rank requested : -?\d+/\d|improper usage of ncclCommInitRank: nId|Bootstrap Root : localId \d+ is out of range|NCCL WARN rank \d+ exceeds ndev=
collective mismatch error, local size \d+ remote size|Message truncated : received \d
Rank \d+ requires NIC \d+ but that NIC is not available for rank|Local mergedDev\S* .*has a different number of devices
MNNVL \(cliqueSize \d+\) is available but not supported on this system
NCCL INFO (NET/Plugin ?: )?Unable to load lib[nr]ccl-net\S* ?: lib[nr]ccl-net\S*: cannot open shared object file
ncclInvalidUsage|NCCL(:| (error|failure|operation)\b).*invalid usage|NCCL ([Ee]rror|failure) 5\b|nccl[A-Z]\w+(\(.*\))? failed: invalid usage|ncclResult: invalid usage
NET/IB : collective mismatch error local size \d+ remote \d+ addr
Unable to run multi-instance workload\. +Ofi plugin is not installed or EFA is not enabled
WARN Invalid NCCL_COMM_ID \[
Timeout waiting for incoming connection \(waited \d+ sec\)
Timeout waiting for RX \(waited \d+ sec\)
RX, connection closed by remote peer
Could not open the nd\d
No neuron device available
Unsupported topology\. Supported number of Neuron Cores
Neuron cores are not contiguous
Unsupported hardware operator code \d+ found in neff
\(FATAL-RT-UNDEFINED-STATE\)
NEURON_HW_ERR=\w
Failed to allocate \S+ \(alignment: \S+ usage: \w+\) on ND
Connect to \S+ failed - retrying
\(NON-FATAL, Ignoring\)
OFI plugin initNet\(\) failed
NEFF is invalid|INVALID_ARGUMENT - NEFF
remote address (\[)?fe80:
NEURON_RT_ROOT_COMM_ID.*(not set|missing|invalid|must)|failed to create global communicator
libnccom\.so.*(cannot open|[Ee]rror)|Error opening libnccom
requires Neuron Driver version|Neuron driver.*(too old|incompatible|mismatch)
(Unable to determine Neuron Driver version|[Nn]euron driver.*not (loaded|found|installed)|/dev/neuron\d*.*No such file)
CCOM INFO .*set by environment to
BuildGlobalComm failed|nrt_build_global_comm.*(fail|error)
Please check /dev/neuron# is accessible
Neuron Runtime \(compatibility id: \d+\) is not compatible|supports Runtime compatibility id range
Neuron runtime cannot be initialized; cannot determine the number of available NeuronCores
(number of|[Rr]equested) .*(NeuronCores?|workers|ranks).*(not supported|unsupported|must be one of)|[Uu]nsupported (replica[ _]group|number of (NeuronCores?|ranks))
[Mm]ismatch(ed|ing)? number of (cc|collective) ops
NRT_EXEC_HW_ERR_\w+|completed with err: 120[0-3]\b|nrt_execute.*status[_ ]?(code)?[=: ]+120[0-3]\b
NRT_EXEC_(BAD_INPUT|OOB|COMPLETED_WITH_NUM_ERR)|completed with err: (1002|1003|1006)\b
(\[NMGR:kmgr_init_mlas\]|\[TDRV:tdrv_init_mla_phase1\]|NMGR:\w+|TDRV:\w+) +(No devices? specified|Could not open the device)|\[NRTD:InitTongas\] Failed to initialize devices
mlx5_core \S+ .{0,60}(handle_hca_cap failed|(mlx5_load_one|mlx5_init_one|init_one) failed with error|enable hca failed|init hca failed|failed to allocate (boot|init) pages|Failed initializing command interface|pre-initializing state, aborting|Missing registers BAR|failed to set issi)|mlx5_core: probe of \S+ failed|could not insert '?mlx5_(core|ib)|mlx[45]_(core|ib): (disagrees about version of symbol|Unknown symbol)
Will cause a leak of a command resource|No done completion|mlx5_core \S+ .{0,60}(Fatal error \d+ detected|handling bad device here|nic state is invalid|NIC mode failed|Health issue observed)
Port module event\[error\]: |temp_warn:High temperature|High temperature on sensors with bit set|Detected insufficient power on the PCIe slot
bnxt_(en|re)\b.*(Detected firmware fatal condition|Firmware not responding, status|Firmware ([Ff]atal|exception|[Nn]on-fatal).* event|FW STALL Detected|Firmware reset aborted|Unable to reset FW|Abandoning msg|Error \(timeout: \d+\) msg)
(irdma|ice) .*(critical PE Error|HMC Error|Requesting a reset|PE Push Error|HW runtime init FAIL|hardware initialization FAILED|EMP reset|Firmware recovery mode detected)|irdma.*CQP (request )?timed? ?out
(Direct firmware load for hfi1_\S+ failed|hfi1.*([Uu]nable to load firmware|firmware load failed|cannot be loaded, error|8051 .*fail)|hfi1: probe of \S+ failed)
hfi1.*(QSFP cable temperature too (high|low)|QSFP supply voltage too|Cable [RT]X channel .*(power|bias) too|QSFP cable on fire|[Pp]ower class .*not supported)
hfi1.*(Entering SPC freeze|SPC freeze error|PCIe fatal error|Fatal error|uncorrectable|SDMA engine .*(hung|halt)|LNI failed|Failed to reinitialize link)
assign_context command failed: (Device or resource busy|No space left on device|Out of memory)|(hfi1?_\w+|psm[23]?_\w+|PSM[23]).*(no (free|more) (ports|contexts|user contexts)|[Dd]evice or resource busy|All .*contexts .*(in use|busy))
Successfully initialized the transport: \S
Successfully initialized the transport: IBGDA
IBGDA Disabled by the environment
IBRC transport skipped in favor of: \S
Libfabric transport skipped in favor of: \S
Unable to initialize any transports
init failed for transport: IBGDA
init failed for transport: P2P
neither nv_peer_mem, or nvidia_peermem detected
Unable to dlopen libibverbs
Unable to dlopen libmlx5dv
device \S+ is not enumerated as an mlx5 device
device \S+ cannot allocate buffer on the specified memory type
cudaHostRegister with IoMemory failed
ibgda_nic_mem_gpu_map failed
cound not find user specified HCA name
Found conflicting parameters NVSHMEM_HCA_LIST and NVSHMEM_HCA_PE_MAPPING
No NICs were assigned to our PE
Our PE is sharing its NIC at index \d+ with \d+ other PEs
Our PE is connected to a NIC with pci distance \S
No providers matched fi_getinfo query
Invalid libfabric transport persona
EFA Provider requires GDRCopy
CUDA or user has disabled support for CUDA VMM
mmap symmetric buf \S+ not supported with libfabric
NVLS: supported
NVLS: cuMulticast is not supported on CUDA or disabled by user
Binding mem_handle \S+ to MC group
Multi-node NVLink is supported and enabled
total allocation has exceeded NVSHMEM
Failed to create shared memory slab
Multiple PEs per GPU \(MPG\) detected but MPS is not running
Bootstrap library dlopen failed for \S
selected bootstrap returned an incompatible version
provided an incompatible version of the transport interface
NCCL library major version \(\d+\) is different
Unable to intialize mem p2p transport \(likely non-fatal\)
nvmlDeviceGetGpuFabricInfoV not found
nvshmemi_common_init failed, continuing
NCCL library not found
NULL value.*(cannot allocate|unable to allocate).*(devx|uar)|mlx5dv_devx_\w+.*(failed|NULL).*(Operation not permitted|Permission denied|EPERM|EACCES)|(nvshmem|ibgda|ibdevx).*mlx5dv_devx_\w+.*(failed|NULL)
Peer GPU \d+ is not accessible
building transport map failed
Unable to open the \S+ transport
(NVSHMEM|nvshmem).*(VMM|cuMem).*(not supported|unsupported|fail)|CUDA VMM.*not supported
requires the same number of PEs on all nodes
(nvshmem|NVSHMEM|ibgda|transport/).*(ibv_create_ah|address handle|create_ah).*(fail|error|NULL)|[Uu]nable to create (ah|address handle)|create_ah.*NULL
Bootstrap plugin (preinit|init) failed
device \S+ is not enumerated as an mlx5 device\. Skipping
NULL value +Unable to create ah|create DC[TI] share err|Error in mlx5dv_devx_obj_modify for (INIT2RTR|RTR2RTS)_QP
no active IB device found, exiting|get_device_list failed
NIC_HANDLER=cpu requires GDRCopy
bootstrap_net_init.*No socket interface found|NVSHMEM.*No socket interface found
non-zero status: 110 ?ibv_modify_qp failed
(Mapping|Binding|Create|Reserve|Importing|Exporting|Subscribing) (exported )?multicast groups? .*failed for pe|Mapping mem size \d+ to MC group \d+ failed|Reserve multicast group mapping failed
NVSHMEM_[A-Z0-9_]+ +.{1,200} \(type: \w+, default: 
NVSHMEM v\d+\.\d+\.\d
NET/OFI Plugin selected platform: \S
NET/OFI Using CUDA driver version \d+ with runtime \d
NET/OFI Selected provider is \S+, fabric is \S+ \(found \d+ nics\)
NET/OFI Selected [Pp]rovider is cxi
NET/OFI Selected provider is .*\(found 1 nics\)
NET/OFI Using transport protocol \S+ \(user set\)
NET/OFI Using transport protocol RDMA
NET/OFI Using transport protocol SENDRECV
NET/OFI Created device with \d+ rails
NET/OFI Support for DMA-BUF registrations: true
NET/OFI Support for DMA-BUF registrations: false
NET/OFI Support for global registrations: \S
NET/OFI Requesting progress model \S
NET/OFI .*Adding \S+=\S+ to environment
Skipping adding \S+ to environment, already set
NET/OFI Disabling NVLS support due to NCCL version
NET/OFI Need to force simple protocol: .*not supported
NET/OFI Tuner selected platform: \S
NET/OFI NCCL_OFI_TUNER is not available because platform
NET/OFI Could not disable CUDA API usage for HMEM, disabling GDR
GDR support reported to NCCL but then couldn.t be configured
FI_OPT_CUDA_API_PERMITTED is not declared
Failed to set FI_OPT_CUDA_API_PERMITTED
EFA provider requires at least libfabric version
NET/OFI .*Failed to initialize \S+ protocol
fi_getinfo\(\) call failed: Function not implemented
NET/OFI .*Caught exception in plugin init
Insufficient Libfabric devices found
Topology reported unexpected number of devices
Unexpected number of remote (control )?rails
Number of forced rails .*not a multiple
NCCL_TOPO_FILE environment variable is already set to
Could not register memory on data rail
Unable to register memory \(type = 2\) for device.*RC: -(14|22|38|95|524)\b
Unable to register memory \(type = [013-9]\d*\) for device.*(RC: -(11|12)\b|[Cc]annot allocate memory|temporarily unavailable)
Unable to register memory \(type = \d+\) for device
Couldn't open a fabric access domain\. RC: -?\d
Couldn't enable endpoint\. RC: -?\d
Couldn't create completion queue\. RC: -?\d
Request \S+ \(.*\) completed with error: err: \d
NET/OFI Request 0x\S+ completed with error\. RC: \d+\. Error: .*unresponsive
NCCL_OFI_NIC_DUP_CONNS set on platform that supports GPUDirect RDMA
WARNING: \S+ set to invalid value
WARNING: Use of \S+ is deprecated
FI_OPT_EFA_EMULATED_WRITE is true when
Failed to find CUDA Runtime library
Cannot open more connection for device ID
Passed fd handle, but not compiled with DMA-BUF support
NET/OFI Using aws-ofi-rccl \S
NET/OFI Selected Provider is \S
No viable endpoint found for CXI provider
Couldn't find any optimal provider
Setting \S+FORK_SAFE environment variable to 1
Invalid type of PCI bus returned
Could not load libgdrapi\.so
Selected [pP]rovider is efa
Couldn.t set FI_OPT_\w
Only EFA provider is supported
Selected [pP]rovider is (tcp|sockets|udp)
fi_getinfo\(\) call failed: No data available
No eligible providers were found|could not find any optimal provider
aws-ofi-(n|r)ccl initialization failed|Initializing plugin failed|Unable to find a protocol that worked
aws-ofi-(n|r)ccl \d
Using Libfabric version \d
Unresponsive receiver
Unreachable remote|prov_errno:? ?15\b|NET/OFI .*Error: ?15\b
Unable to insert remote address into address vector
NET/OFI (Couldn't|Could not|Unable to|Error).*(RC: -12\b|Cannot allocate memory)
does not support 4 bytes of immediate data|does not provide enough tag bits|supports MR key size of \d+, but \d+ was requested
Failed to resolve (libgdrapi\.so symbol|GDRCopy v2 API)
your OpenFabrics subsystem is configured to only
The InfiniBand retry count between two MPI processes has been|"receiver not ready" retry count on a
create an internal queue\. +This typically indicates a failed
device has run out of queue pairs \(too many connections\)
One or more nonexistent OpenFabrics devices/ports were
The OpenFabrics stack has reported a network error event
was unable to find the specified executable file|unable to launch the specified application as it could not
OMPI (was )?not buil[dt] with SLURM.s PMI support|OMPI was not built with SLURM support
appears to have been direct launched using .?srun
at least one MPI process is unreachable|At least one pair of MPI processes are unable to reach|Unable to reach|none of the (btl|BTL) components
btl_tcp\S*.*(connect\(\)|unable to connect)|btl_tcp_(endpoint|component|proc)\S*.*failed|mca_btl_tcp_frag_\w+: \w+ failed: (Connection timed out|No route)|mca_btl_tcp_endpoint.*(connect\(\)|failed)|btl_tcp.*received unexpected process identifier|Open MPI accepted a TCP connection from what appears to be
(ORTE|PRTE|orted|prted).*(unable to (reliably )?(start|contact)|was unable to)|A daemon .*died unexpectedly
allocate some locked memory|failed to initialize.*locked memory
Failed to register remote memory, rc=
Hello from rank 0 of 1\b|PMI: Initialization failed|singleton MPI_Init
No PMIx server was reachable, but a PMI1/2 was detected|singletons will be started
A system call failed during shared memory initialization
Error: +(Permission denied|File exists) \(errno (13|17)\)
An invalid value was given for (oob|btl)_tcp_(if_)?(include|exclude)
Open MPI failed to TCP connect to a peer MPI process|Open MPI failed to handshake with a connecting peer
^unexpected\.  This is highly unusual|Open MPI detected an inbound MPI TCP connection request
The accept\(3\) system call failed on a TCP socket
An MPI communication peer process has unexpectedly disconnected
there is not enough space for .*\(the shared-memory backing
Open MPI failed an OFI Libfabric library call \(fi_(domain|endpoint|enable|fabric)\)
^ *Error: Function not implemented \((38|18446744073709551578)\)
^ *Error: Cannot allocate memory \(12\)
The OFI MTL was not able to find endpoint information for a remote
Hello.* (rank|proc|process|task) #?0 (out )?of 1\b
OPAL ERROR: \S.* in file (ext\d+x|pmix\d*x?)_client\.c
Failed to create a completion queue \(CQ\)
Signal: Bus error \(7\)|Caught signal 7 \(Bus error
selected pml \w+, but peer \S+ on \S+ selected pml ?\r?$
selected pml \w+, but peer \S+ on \S+ selected pml \w
Unable to find reachable pairing between local and remote interfaces
Unable to connect to the peer \S+ on port \d+:
mca_btl_tcp_frag_recv: readv failed: Connection reset by peer
unable to complete a TCP connection|unable to establish a TCP connection back to mpirun
No components were able to be opened in the pml framework|PML \w+ cannot be selected
but there are no active ports detected
mca_btl_\w+_if_(include|exclude).*(does not exist|not found|unknown)|The specified interfaces? .*could not be (found|used)|An invalid value was given for (btl|oob)_tcp_if_(include|exclude)
--> Returned "Not found" \(-13\) instead of "Success"
A call to mkdir was unable to create the desired directory|failed to create .{0,20}session director
^ *Error: +(No space left on device|Disk quota exceeded)
connect\(\) to 172\.17\.\d+\.\d+(:\d+)? failed|peer (IP|address):? *172\.17\.\d+\.\d
Couldn't connect to \S+:\d+|Unable to (init|open file descriptor for) (the )?socket connection
Port number \d+ state is (Nop|Down)
Port number \d+ state is (Init|Armed)
IB device \S+ not found|Device (mlx|bnxt|roce|ib|irdma|rocep|ibp|hns|qedr|cxgb|efa|rdmap)\w* (was )?not found|Did not detect devices 
Unable to find the Infiniband/RoCE device
Unexpected CM event bl blka (1|3)$|rdma_resolve_addr (failed|error)|RDMA_CM_EVENT_ADDR_ERROR
PMI_(Get|Init|KVS|Barrier)\w*.*(pmix_s[12]\.c|[Oo]peration failed|failed)|pmix_s[12]\.c|PMI2?_Init (failed|returned)
PMIX_ERR_(PACK|UNPACK)_MISMATCH|(PACK|UNPACK)-?_?MISMATCH|PMIX ERROR: (PMIX_ERR_)?UNPACK
PMIX ERROR: .*in file client/pmix_client\.c|PMIX ERROR: .*gds_(ds\d+|shmem)
pmix_psec_base_open failed|Framework: +psec|PMIX_MCA_psec|psec.*(munge|native).*(not|fail)
PMIx_Init failed|PMIx_server_init failed
UNPACK-PMIX-VALUE: UNSUPPORTED TYPE|PMIX ERROR: (PMIX_ERR_)?UNKNOWN.DATA.TYPE in file \S*(bfrop|gds)
PMIX ERROR: (PMIX_ERR_)?OUT[-_]OF[-_]RESOURCE in file \S*(bfrop|gds)
PMIX ERROR: (PMIX_ERR_)?INVALID[-_]CRED
PMIX ERROR: (PMIX_ERR_)?NO-?_?PERMISSIONS|PMIX ERROR: .*(dstore|tmpdir|session)\S* .*[Pp]ermission
UNPACK-PMIX-VALUE: UNSUPPORTED TYPE \d+|nspace "\S+" has only \d+ ranks, asked for -\d
PMIX ERROR: (PMIX )?(TEMPORARILY[ -]UNAVAILABLE|UNREACHABLE|HANDSHAKE[ -]FAILED) in file \S*ptl_(tcp|base_\w+)\.c
PSM3 no nic units are available|Couldn't find any unfiltered units
PSM[23] no (nic|hfi) units are active|FATAL: HFI has no active ports|Error: HFI unit \d+ is not active|FATAL: Found \d+ active HFI device
Can't get a valid pkey value from pkey table on|Wrong pkey 0x[0-9a-f]+ on \S+ port|Limited Member pkey 0x[0-9a-f]+ on
Mismatched (address format|protocol): remote EP \(|Remote Connect \(.*\) epid (address format|protocol) .* is incompatible with local
Trying to connect from \S+ port \d+ \(subnet .*\) to a node \(.*\) on a different subnet
OFED Plus path lookup failed
PSM3_QP_PER_NIC \(\d+\) \* num_rails \(\d+\) > Max Support QPs|RC QP Send Q too small: Limited to
reg_mr failed for too many times|Rendezvous module lacks enable_user_mr capability
(Reading from|Writing to) remote process' memory failed\. +Disabling CMA support
Error setting size of shared memory object to \d+ bytes in ftruncate: (No space|Cannot allocate)
Error (creating|opening remote) shared memory object \S+ in shm_open: Permission denied
FATAL: detected no HFIs|No HFI units found|\[HFI1-DIRECT\] No (device found|matching device)|Unable to open (application|user)-specified HFI
FI_HMEM is enabled, but the installed HFI driver is not HMEM enabled|PSM3_GPUDIRECT requires rv module with
\[HFI1-DIRECT\] User major version 0x[0-9a-f]+ not same as driver major
Detected user specified FI_OPX_PKEY of .* invalid value|Error: (HFI selection substring|invalid range used for HFI selection|User specified an env FI_OPX_SL)
(ModuleNotFoundError|ImportError): No module named |: No module named '?[a-zA-Z]
(ImportError|OSError): lib\S+\.so\S*: cannot open shared object file
(ImportError|OSError): .*\.so\S*: undefined symbol: _ZN?K?[0-9]*(3c10|2at|5torch|8torch)
Torch not compiled with CUDA enabled|Distributed package doesn't have (NCCL|UCC|MPI) built in|PyTorch was compiled without (CUDA|NCCL)|built without NCCL
CUDA_HOME (environment variable is not set|does not exist)|Failed to find C compiler\. Please specify|Ninja is required to load C\+\+ extensions|[Nn]o such file or directory: '\S*/?(nvcc|gcc|g\+\+|ninja)'|: (nvcc|gcc|ninja): (command )?not found
PermissionError: \[Errno 13\] Permission denied: |(OSError|IOError): \[Errno 30\] Read-only file system|Unable to create TMPDIR \[.*\]: (Permission denied|Read-only)|mkdir: cannot create directory .*: (Permission denied|Read-only file system)
received \d+ items of ancdata
We couldn't connect to 'https://huggingface\.co'|LocalEntryNotFoundError: |HTTPSConnectionPool\(host='\S+', port=443\): Max retries exceeded|Cannot send a request, as the client has been closed|OfflineModeIsEnabled
env:// rendezvous: environment variable \w+ expected, but not set|^(\[\w.]+\]:? ?|\d+: )?KeyError: '((LOCAL_|NODE_|GROUP_)?RANK|(LOCAL_)?WORLD_SIZE|MASTER_(ADDR|PORT)|SLURM_(PROCID|LOCALID|NTASKS|NPROCS|NNODES|NODEID|(JOB|STEP)_\w+|NODELIST)|(OMPI_COMM_WORLD|MV2_COMM_WORLD|PMI|PALS|PMIX|FLUX|JSM_NAMESPACE)_\w+)'
Timed out initializing process group in store based barrier on rank
Cannot re-initialize CUDA in forked subprocess
Current node has no GPU available\. current_node_resource
MPI_ABORT was invoked on rank \d+|[Aa]pplication called MPI_Abort\(
MPI_ERR_(TRUNCATE|ARG|COUNT|TYPE|TAG|RANK|OP|BUFFER|ROOT|GROUP|REQUEST): |function was called (before MPI_INIT|after MPI_FINALIZE)|Message truncated; \d+ bytes received but buffer size is|Invalid (tag|rank|root|count|buffer), error stack
MPI_ERR_COMM: |Invalid (communicator|datatype|MPI_\w+), error stack
Unable to find a set of common task-to-task communication interfaces|Horovod was unable to connect to .* service in |NoValidAddressesFound
Ray is trying to start at \S+, but is already running at|Session name session_\S+ does not match persisted value
ImportError: cannot import name '?\w|VersionConflict: |DistributionNotFound: |is required for a normal functioning of this module, but found |numpy\.(dtype|ufunc) size changed, may indicate binary incompatibility|compiled using NumPy 1\.x cannot be run in
AttributeError: (partially initialized )?module '[\w.]+' has no attribute '
\bnvcc: (command )?not found|No such file or directory: '\S*/bin/nvcc'|CUDA_HOME (environment variable is not set|does not exist)
launcher '(pdsh|openmpi|mpich|impi|slurm|mvapich)' not installed
Failed to find other valid local IP\. Using 127\.0\.0\.1
ray client connection timeout|([Ff]ailed|Unable) to (re)?connect to GCS( at| within|\.)|Failed to send request to gcs|Failed to get the system config from raylet|Failed to connect to Redis at|Unable to connect to Redis at \S+ after|Could not find any running Ray instance|This node has an IP address of \S+, and Ray expects|[Gg]cs[ _]rpc[ _]client.*(is down|has been dead|unavailable for)|The GCS is (not available|dead)|Some processes that the driver needs to connect to have not registered with (GCS|Redis)
file_system_monitor\.cc:\d+\]?:? \S+ is over \d+% full|OutOfDiskError|local disk is full, and the object
has been marked dead because the detector has missed too many heartbeats|[Tt]he actor died because its node has died|node has missed too many heartbeats
node was terminated (un)?expectedly: received SIGTERM|node death.*EXPECTED_TERMINATION
node was terminated (un)?expectedly: preempt|AUTOSCALER_DRAIN_PREEMPTED|DRAIN_NODE_REASON_PREEMPTION|the actor's node was preempted
No available node types can fulfill resource request|resource request cannot be scheduled right now|Current node has no GPU available\. current_node_resource|exceeds the total number of available \S+ in the (placement group|cluster)|No available node can satisfy the placement group|Cannot provide a placement group of|Placement group creation timed out
Some Ray subprocess(es)? exited unexpectedly|raylet died with exit code|raylet \[exit code=|Ray processes died unexpectedly|The raylet exited unexpectedly|Raylet is terminated\.
RuntimeEnvSetupError
System memory request exceeds memory available in /dev/shm
object store is using \S+ instead of /dev/shm|object store size \(.*exceeds /dev/shm size
Unable to register worker with raylet|Could not connect to socket \S*/raylet|Failed to register worker .*to [Rr]aylet|[Rr]aylet .*(did not|failed to) (start|register)
NodeDiedError|node \(where this task was running\) was dead|node_ip_address: \S+ .*was marked dead
(OwnerDied|ObjectLost|ObjectReconstructionFailed\w*|ActorUnavailable|ReferenceCounting\w*|ObjectFetchTimedOut|GetTimeout)Error
Ray does not allocate any GPUs on the driver node|driver node id \S+ is not included in a placement group
Waiting for creating a placement group of specs for \d{2,} seconds
RCCL version : \d+\.\d+\.\d
Librccl path : \S
Missing .HSA_FORCE_FINE_GRAIN_PCIE=1.
Kernel version: \S+cray
Dmabuf feature disabled without NCCL_DMABUF_ENABLE=1
Current version of ROCm does not support dmabuf
CONFIG_DMABUF_MOVE_NOTIFY and CONFIG_PCI_P2PDMA should be set
missing symbol hsa_amd_portable_export_dmabuf
ROCm SMI init failure
rocm_smi_lib: \S+ device index not found
Using MSCCL files from \S
Unable to find algorithm files in .*RCCL has been installed properly
is lesser than number of channels required by MSCCL
MSCCL\+\+: Enabled! Msg size threshold=\d
MSCCL\+\+: Cannot enable
Add XGMI error : could not find GPU
RCCL enabled same node P2P over network
No external scheduler found, using internal implementation
Missing .{0,2}(amd|intel)_iommu=on.{0,2} from kernel command line
Missing .{0,2}iommu=pt.{0,2} from kernel command line
NUMA auto balancing enabled
HSA_NO_SCRATCH_RECLAIM(=1 must be set| is not set with)
wandb: (W&B )?Network error|wandb: .*(dial tcp|no such host|connection refused|network is unreachable|Client\.Timeout exceeded)|wandb.*Failed to upload file|comet_ml.*ouldn't connect to server
Run initialization has timed out after|Error communicating with wandb process|wandb.*[Uu]nable to (connect|verify login)
HTTPConnectionPool\(host='\S+', port=\d+\): (Max retries exceeded|Read timed out)|EndpointConnectionError|Could not connect to the endpoint URL|Connect(ion)? ?[Tt]imeout(Error)? on endpoint URL|ConnectTimeoutError: |ProxyConnectionError|Cannot connect to proxy|Tunnel connection failed: 
fatal: unable to access 'https?://.*(Could not resolve|Failed to connect|timed out)|wget: unable to resolve host address|curl: \((5|6|7|28)\) 
api_key not configured \(no-tty\)|No API key configured\. Use `wandb login`|NoCredentialsError|Unable to locate credentials|DefaultCredentialsError|Your default credentials were not found|DefaultAzureCredential failed to retrieve a token|CredentialUnavailableError|PartialCredentialsError
\((ExpiredToken(Exception)?|RequestExpired|TokenRefreshRequired)\)|security token included in the request is expired|provided token has expired|UnauthorizedSSOTokenError|SSO session associated with this profile has expired
RequestTimeTooSkewed|difference between the request time and the (current|server's) time is too large
An error occurred \((AccessDenied|403|401|InvalidAccessKeyId|SignatureDoesNotMatch|AllAccessDisabled|SlowDown|RequestLimitExceeded|Throttling\w*|503)\) when calling the
"action": ?"(terminate|stop|hibernate)", ?"time": ?"|[Ss]pot ([Ii]nstance )?([Ii]nterruption|[Tt]ermination) ([Nn]otice|[Ww]arning)|BidEvictedEvent|compute\.instances\.preempted|[Ii]nstance (was|is being|will be) preempted|TERMINATE_ON_HOST_MAINTENANCE|"EventType": ?"Preempt"|Instance preemption notice|SpotInterruption
imminent node shutdown|Preempted in order to admit critical pod|\bPreempted by (a )?(pod|[0-9a-f]{8}-)|PreemptionByScheduler|reason: (Preempting|Preempted|NodeShutdown)\b|Reason: +(Preempting|NodeShutdown)\b|Evicted due to pod preemption|Preempted to accommodate a (higher priority )?(workload|Workload)
TaintManagerEviction|DeletionByTaintManager
Caught signal \w+ on \S+: this job is preempted|TERM_PREEMPT\b
(Received|Bypassing) SIGTERM: 15|exiting program after receiving SIGTERM
libhugetlbfs( \S+)?: (WARNING|ERROR): (New heap segment map at|Hugepage size \d+ unavailable|[Hh]eap .*failed|While overriding shmget|Couldn't find|No mount point|[Nn]o suitable)|MAP_HUGETLB\S*( failed)?[:)] .*Cannot allocate memory|HugeTLB: allocating \d+ of page size \S+ \S+ failed|Insufficient hugepages-
EAL: (No free \d+ kB hugepages|(FATAL: )?Cannot get hugepage information|No free hugepages reported|Not enough memory available on socket \d+\. Requested: \d+MB)
\bBus error\b|SIGBUS|[Ss]ignal 7\b|exit(ed)? (code|status)[ :=]+135\b
can't stat gres\.conf file |Waiting for gres\.conf file 
gres\.conf duplicate records for |some records have \S+ specification while others do not|config-only GPU due to lack of File|does not match what was detected\. If this is intentional|has mismatching Cores or Links from the device|If using AutoDetect the amount of GPUs|Invalid GRES record for \S+, (invalid count|count does not)|MIG mode is enabled, but no MIG devices were found|autodetected GPUs are being ignored
(count reported lower than configured|gres/gpu\S* count too low|count too low) \(\d+ < \d+\)
to autodetect \w+ functionality, but we weren't able to find that lib|functionality, but that lib wasn't found on the system|Configured with (rsmi|oneAPI), but 
Node configuration differs from hardware|has low (real_memory|tmp_disk|socket\S*core|cpu|sockets|cores) \S*|Low (RealMemory|TmpDisk|socket\*core count|CPUs)\b
Incompatible versions of client and server code|protocol_version \d+ not supported|Invalid Protocol Version \d+ from|Protocol version mismatch .{0,40}slurm
has authentication error: |Invalid authentication credential|Protocol authentication error
Invalid job credential|Unable to verify job credential|cred_g_verify.{0,40}(failed|invalid)
(Keyfile|Logfile|Socket|PRNG seed dir|PIDfile|The auth (server|client) dir) is insecure: |Failed to (check|open|find) keyfile 
Controller \w+ is not enabled!|cgroup controller is not available|is not a valid cgroup2 mountpoint|Hybrid mode is not supported\. Mounted cgroups|systemd scope for slurmstepd could not be set|cgroup_dbus_\w+: cannot connect to dbus|cannot create cgroup context for|cgroup mountpoint does not align with the current namespace|cgroup filesystem not mounted in|Could not obtain system controllers from|contains pids from outside of our pid namespace
Credential data mismatch
Invalid generic resource \(gres\) specification
cgroup namespace '\w+' not mounted|[Tt]he cgroup mountpoint \S+ is not mounted|No filesystem mounted on /sys/fs/cgroup|CgroupPlugin=disabled (is set )?in cgroup\.conf|Failed to read cgroup (state|conf) from slurmd|is not under the cgroup mountpoint
gres\.conf: duplicate node-local AutoDetect|can't parse gres\.conf file record|we have a shared gres of '\w+' but no gres that is sharing|Changed size count of GRES
Could not establish a configuration source|DNS SRV lookup failed|failed to fetch (remote )?config|unable to status file \S+slurm\.conf|No slurm\.conf found in|Unable to process (slurm\.conf|configuration) file
appears to have a different (version of )?slurm\.conf than the slurmctld|slurm\.conf than the slurmctld
Unable to determine this slurmd's NodeName|Couldn't find nodename|Node \S+ (is )?not in (the )?(slurm|config)|Invalid node name specified|lookup failure for node "\S+"
Unable to initialize slurmd spooldir|SlurmdSpoolDir (stat error|is not a directory|open error)|unable to create spool directory|(slurmd|slurmctld|slurmdbd): .*mkdir\(.*\): (Permission denied|No such file|Read-only)|Can not (stat|recover|save).*StateSaveLocation|StateSaveLocation.*(not|denied|No such)|_log_init: Unable to open logfile
Error writing file .*No space left on device|slurm(ctld|dbd|d)\S*: .*(state|spool|log|save).*No space left on device
failed to open persistent connection to host:|Sending PersistInit msg: |mysql_real_connect failed|Unable to connect to database|Association database appears down|Problem talking to (the )?(slurm)?(db|database)
Nodes? \S+ not responding, setting DOWN|Reason=Not responding|reason set to: Not responding
[Nn]ode \S+ (now responding|returned to service)
DUE TO (JOB|STEP) NOT ENDING WITH SIGNALS|reason set to: Kill task failed|Reason=Kill task failed|job_not_ending|still not ended after \d+ seconds
\b([Pp]rolog|[Ee]pilog) failed status=|(reason set to:|Reason=) ?(Prolog|Epilog) error|Job (prolog|epilog) failed|Task(Prolog|Epilog) failed|srun (prolog|epilog) failed|Could not run (slurm )?(task_)?(prolog|epilog)
(reason set to:|Reason=) ?NHC: |\bNHC: (check_|nv_health|HC )|nhc: Health check failed|Node Health Check failed|ERROR: +nhc: 
User not found on host|uid \d+ not found|Invalid user id \d+|unable to (look|get) up? ?user|getpwuid\S* failed|initgroups\(?.* failed
Unable to establish control(ler)? machine( address)?|Unable to establish controller machine
Requested time limit is invalid|Requested partition configuration not available|Invalid feature specification|Invalid Trackable RESource|Memory specification can not be satisfied|Requested (operation|GRES option) .*(unsupported|not available)
unable to (write|add) .*(to cgroup|cgroup) \S+: (No space left on device|Invalid argument)|cgroup.*: No space left on device
CANCELLED AT \S+ DUE TO (PREEMPTION|NODE REBOOT)
SPANK plugin .*pyxis.* option .* not found
io error with slurmstepd on node|_server_read: fd \d+ (error reading header|got error or unexpected eof)|Unable to send job complete message
unable to (add task\[pid=\d+\] to memory cg|instanciate (job|user|step) \d* ?memory cgroup)|(x?cgroup_instantiate|xcgroup_create): unable to create cgroup '
execve\(\): \S+/slurm_script: No such file or directory
Something happened with the receiving/processing of the persistent connection init message|slurm_persist_conn_open\w*: (failed|Unable|Something)
Error configuring interconnect|Cannot allocate VNI|Could not (get|create|allocate) .*CXI
\berror: Nodes? \S+ not responding\r?$
(Reason[= :]+|\()(Assoc(Grp|Max)|QOS(Grp|Max)|QOSMin)\w
Could not open \S+ state file \S+: No such file or directory
I/O error writing script/environment to file|[Ss]lurmd could not create a batch directory or file
ClusterName needs to be specified
pmi/pmix: can not load PMIx library
incorrect PMIx library version loaded \d+ was loaded, required \d
MPI: Cannot create context for mpi/\w
Invalid MPI (plugin name|type)|invalid MPI type
MPI plugin types are
MPI: SLURM_MPI_TYPE environmental variable is not set
unable to resolve MPI plugin offset from plugin_id
PMIx_server_init failed with error -?\d
Cannot create server lib tmpdir
UNIX socket path is too long
Cannot open UCX lib: 
mpi/pmix_v\d+: .*Can't find address for host
mpi/pmix_v\d+: .*Cannot establish the connection
mpi/pmi2: unsupported PMI version
Can't propagate RLIMIT_MEMLOCK of 
Can't propagate RLIMIT_NOFILE of 
BPF load error .*system limits \(MEMLOCK\)
Detected \d+ oom[-_]kill event
Could not apply device constrain
is not a valid character or block device, fix your gres\.conf
Slingshot service allocation failed on \S
No CXI devices available
Couldn't find CXI library
Cannot allocate VNI \(min/max/last
Single-node VNI requested by user, but
No LE pools available on \S
Check for out of sync clocks
Munge decode failed: (Expired) credential
Munge decode failed: (Rewound) credential
Munge decode failed: Invalid credential
Munge encode failed: .*socket\S* *(: *)?(No such file|Connection refused)
Munge encode failed: .*socket\S* *(: *)?(Permission denied|Operation not permitted)
Munge encode failed: .*socket\S* *(: *)?(Resource temporarily unavailable|Connection timed out)|Munge encode failed: .*[Tt]imed out
Failed to invoke task plugins: one of
task \d+: Out Of Memory
Can.t propagate RLIMIT_\w+ of
cannot find \S+ plugin for
MPI (plugin )?types are
(mpi/pmix|pmix).*(plugin|library).*(not found|cannot|can ?not|unable|couldn.t|could not)|Couldn.t find the specified plugin name for mpi/
credential.*rewound|Rewound credential
Job credential (expired|replayed)|credential.*expired|Expired credential
Zero Bytes were transmitted or received
[Cc]lock.*(skew|out of sync|not synchroni[sz]ed)|[Tt]ime[ -]?skew
srun: error: .*(Exited with exit code|Segmentation fault|Aborted|Killed|Bus error|Terminated)
(NODE_FAIL|Node failure on|DUE TO NODE FAILURE|node not responding)
cannot find \w+ plugin for mpi/
pmixp_dmdx\.c.*Bad request from|has only \d+ ranks, asked for|asked for nspace = 
mpi/pmix\S*:.*Cannot (bind\(\)|create|listen\(.*) UNIX socket
mpi/pmix\S*:.*collective timeout seq
Couldn't load specified plugin name for mpi/pmix|can not load PMIx library
srun: unrecognized option '--cpu_bind
(step creation (temporarily disabled|still disabled)|Unable to create step for job).*(Requested nodes are busy|Job/step already completing)
Unable to contact slurm controller \(connect failure\)
(Unable to (confirm allocation|contact slurm controller|create step)|slurm_load_\w+ error).*(Socket timed out on send/recv|connect failure|Unable to contact)
Invalid account or account/partition combination specified|Invalid qos specification|User's group not permitted to use this partition|[Ii]nvalid partition (name )?specified
(Unable to allocate resources|Batch job submission failed|Job submit/allocate failed|Unable to create step for job \d+|Unable to create job step): (Requested node configuration is not available|More processors requested than permitted|Node count specification invalid|Memory required by task is not available)
(Couldn't find the specified plugin name for|cannot find) cgroup( plugin for cgroup)?/v\d|Couldn't find the specified plugin name for cgroup
Job violates accounting/QOS policy
ReqNodeNotAvail|UnavailableNodes:|Nodes required for job are DOWN, DRAINED
Unable to layout tasks on given cpus|failed to distribute tasks \(bind_type|_task_layout_lllp_\w+ (failure|infinite)
Failed to validate job spec|Failed to ensure --\S+ >= --gres|Requested (mem|cpus)_per_tres=\S+ but did not request any GPU|Inconsistent values set (to|by) .*ntasks.per|SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive|set by two different environment variables|Not enough (shared )?gres to bind
Required (node|partition) not available \((down|inactive)|Requested nodes? (is|are) down
CANCELLED AT \S+ DUE TO NODE \S+ FAILURE|Job \S+ cancelled from interactive user or node failure
(srun|slurmctld|slurmd|slurmstepd|sbatch|salloc): error: .*([Cc]an't find an? address|Unable to resolve "|can't find address for host|xgetaddrinfo: getaddrinfo\(.*failed)
[Cc]ould not open std(out|err|in) file \S+: (Permission denied|No such file|Read-only|Disk quota|No space)
Nodes required for job are DOWN, DRAINED or reserved|\(ReqNodeNotAvail
(mpirun|mpiexec|orterun|prun|prterun|prte) has detected an attempt to run (this command )?as root
parameter .*plm_(rsh|ssh)_agent.* was set to a path|Unable to find (a usable )?(ssh|rsh)( or rsh)? in|unable to get path to the (ssh|rsh) executable
The SLURM process starter for (OpenMPI|PRTE|PRRTE) was unable to locate a|execvp error on file \S+ \(No such file|unable to find the specified executable|launcher '[a-z]+' not installed|pdsh: command not found|(/bin/)?(ba)?sh: .*(pdsh|srun|mpirun|mpiexec|torchrun|deepspeed|ray|accelerate): (command )?not found
A requested component was not found, or was unable to be opened
(opal_init|orte_init|prte_init):startup:internal-failure|help-(opal-runtime|opal-util|orte-runtime|orterun|mca-base)\.txt: No such file
A daemon \(pid \d+\) died unexpectedly with status 127\b
A daemon \(pid \d+\) died unexpectedly with status 255\b
error while loading shared libraries: \S+\.so[.0-9]*: cannot open shared object file
unable to change wdir to |couldn't chdir to `.*': (No such|Permission|Input/output|Stale|Transport)|chdir\(.*\): (No such file|Permission denied)|OCI runtime exec failed: .*chdir to cwd|Could not chdir to (home|working) directory
PMI server not found\. Please set I_MPI_PMI_LIBRARY
execve\(\): .*: Permission denied|execvp error on file \S+ \(Permission denied|exec: ".*": permission denied
Version mismatch: The cluster was started with|Ray version mismatch: cluster has Ray version
Every node should have a unique IP address\. Got 
APPLICATION TERMINATED WITH THE EXIT STRING: Killed \(signal 9\)
UCX +(WARN|ERROR) +transports? .* (is|are) not available, please use one or more of
UCX +(WARN|ERROR) +UCP (API )?version is incompatible
rdma_create_event_channel.*failed: (No such device|No such file)|librdmacm: (Fatal: unable to open RDMA device|couldn't read ABI version)
no (active messages|remote memory access|atomic|auxiliary|tag matching) transport to .* - no peer failure handler
\bmca_\w+(\.so)?: .*undefined symbol: 
taskset: failed to set pid \d+'s affinity: Invalid argument|libnuma: Warning: (node|cpu|nodes?) argument \S+ is out of range|libnuma: Warning: cpu argument \S+ out of range|numactl: .*(out of range|<.*> is invalid)|Unable to set CPU affinity|numa_sched_setaffinity_v2_int\(\) failed: Invalid argument
FAILED to (find user volume to:|setup user-requested mounts|find user volume from:)|can't bind: (source|destination) not found|destination \S+ doesn't exist in container|[Ff]ailed to bind mount 
CPU binding outside of job step allocation
cxi\d+\[\w*\]:? CXI_EVENT_LINK_UP
nfs: server \S+ not responding
nfs: server \S+ OK
Lustre(Error)?: .*Connection to \S+ .*was lost
Lustre: .*Connection restored to 
Started (NVIDIA fabric manager|nvidia-fabricmanager)
Started MUNGE authentication service
(slurmd|slurmctld)\.service: (Failed with result|Main process exited, code=exited, status=[1-9])|Failed to start Slurm (node|controller) daemon
Started Slurm (node|controller) daemon
mlx5_core \S+ .{0,40}health recovery succeeded
status is now: NodeNotReady|Node \S+ status is now: NodeNotReady|\bNodeNotReady\b
Node \S+ status is now: NodeReady
PytorchStreamReader failed (reading|locating|getting)|SafetensorError: .*(HeaderTooLarge|HeaderTooSmall|MetadataIncompleteBuffer|InvalidHeader|deserializing header)|pickle data was truncated|EOFError: Ran out of input|invalid load key, '|unexpected EOF, expected \d+ more bytes|BadZipFile: |gzip: .*(unexpected end of file|not in gzip format)|zlib\.error: Error -[35] while decompressing|BadGzipFile: 
unable to lock file, errno = 11\b|Timeout: The file lock '[^']*' could not be acquired|filelock\.\S*Timeout|\[Errno 26\]|: Text file busy
sqlite3?\.(OperationalError|DatabaseError): .*(disk I/O error|database is locked|locking protocol|unable to open database file)
Transport endpoint is not connected: '/|(^|[ '])/\S+: Transport endpoint is not connected|\[Errno 107\] Transport endpoint is not connected: 
\[Errno (5|121)\] (Input/output|Remote I/O) error: |/\S+: (Input/output error|Remote I/O error)\r?$
Key has expired|(^|: )/\S+: Required key not available|No Kerberos credentials available|\[Errno 12[67]\]
GatedRepoError|RepositoryNotFoundError|Cannot access gated repo|(HfHubHTTPError|requests\.exceptions\.HTTPError|urllib\.error\.HTTPError): .*\b(401|403|429)\b|\b(401|403|429) Client Error: 
Licensed number of users already reached|Cannot connect to license server system|[Ll]icen[sc]e checkout failed|FlexNet Licensing error: ?-\d|FLEXnet Licensing error: ?-\d|No such feature exists\. \(-5|License server machine is down or not responding
\b(InsufficientInstanceCapacity|InsufficientReservedInstanceCapacity|VcpuLimitExceeded|InstanceLimitExceeded|MaxSpotInstanceCountExceeded|ZONE_RESOURCE_POOL_EXHAUSTED\w*|QUOTA_EXCEEDED|OverconstrainedAllocationRequest|OverconstrainedZonalAllocationRequest|SkuNotAvailable)\b
_multiprocessing\.SemLock\(|_posixshmem\.shm_open\(|multiprocessing/shared_memory\.py"|os\.ftruncate\(self\._fd, 
No route to host
Memory cgroup out of memory|CONSTRAINT_MEMCG|oom_kill event|OOMKilled|OOM Killed|Out Of Memory\r?$
Too many open files
(Connection timed out|ETIMEDOUT|Broken pipe).*idle|(idle|keep-?alive) (timeout|timed out)
(Name or service not known|Temporary failure in name resolution|getaddrinfo.*failed)
\bRemoveIPC ?= ?(yes|true|on|1)\b
(EADDRINUSE|Address already in use|Cannot assign requested address.*port)
upstream connect error or disconnect/reset before headers|no healthy upstream|istio.*(upstream|reset|denied|blocked|intercept)
envoy (connection|upstream|conn_handler|filter|router)\b.*(remote (early )?close|remote reset|upstream reset|TLS error|idle timeout)
\b(ERROR|[Ee]rror|FATAL|[Ff]atal|CRITICAL|[Pp]anic|[Aa]borted|[Ss]egmentation fault|Bus error|[Ff]ailed|FAILED|[Ff]ailure|[Uu]nable to|[Cc]annot|[Rr]efused|[Tt]imed out|[Dd]enied|[Oo]ut of memory|[Nn]o such file or directory|No route to host|[Ii]nvalid argument)\b|(Error|Exception):|\bNCCL WARN\b|^[FE]\d\d\d\d 
\bmlx\d_\d|\bmlx\d_core\b|\bbnxt_re\d|\bbnxt_re_bond\d|\birdma\d|\brocep\d+s\d|\bionic_\d|\berdma_\d|NET/IB : Using \[
\befa_\d|\brdmap\d+s\d|fi_addr_efa|[: ]efa[:;,-]|[Pp]rovider is efa
\bcxi\d\b|[: ]cxi[:;,]|\bcxip_\w|\bcxil_\w|[Pp]rovider is cxi
\bNVIDIA [A-Z]+\d|\bNVRM: |\bcudaDriverVersion \d|NCCL version \d[^ ]*\+cuda|\bCUDA (error|failure)|\bcuMem\w
\bamdgpu\b|/dev/kfd\b|\bRCCL version\b|\bHIP (error|failure|version)|\bgfx(9|1)\w\w|\bAMD Instinct
/dev/neuron\d|\bNRT:\w|\bTDRV:\w|\bneuronx?-\w|\[N[RM][TG][DR]:
\bhost +: [0-9a-f]{12}$|/docker/containers/|\bkubepods\b|/\.singularity\.d/
\bNVRM: |\bkernel: |\] mlx5_core |\bamdgpu \d\d\d\d:
^srun: |\bslurmstepd: |\bslurmd(\[\d|: )
\bUCX +(ERROR|WARN|DIAG|INFO|DEBUG)\b|\bpml_ucx\.c
ORTE_ERROR_LOG|PRTE ERROR|PMIX ERROR|\[\[\d+,\d+\],\d+\]|mca_(btl|pml|base)_\w
torch\.distributed|torch/distributed/|ProcessGroupNCCL|\[c10d\]|torchelastic
\bnvshmem|\bNVSHMEM (INFO|WARN|ERROR)
\blibfabric:\d+:\d|\bNET/OFI\b|\bfi_getinfo\b
\bMPICH ERROR|\bMPIDI_\w|\bMPID_Init\b|\bPMPI_Init
(Errno 28|ENOSPC|[Nn]o space left on device).{0,30}/dev/shm\b|/dev/shm/\S+.{0,30}([Nn]o space left on device|ENOSPC)
\b[Ss]tate:[ \t]{1,20}(Initializing|INIT \(2\)|PORT_INIT \(2\))
\b([Pp]hysical state|phys(ical)?_state):[ \t]{1,20}(Polling|Disabled|POLLING|DISABLED|LinkErrorRecovery)
(OSError|IOError): \[Errno 28\] No space left on device: |(write error|[Cc]annot (write|create|open)\b.*|mkdir\b.*|error writing .*): No space left on device|\b[Ww]rit(e|ing) (error|failed)\b.*No space left on device
\[Errno 28\] No space left on device\r?$
Disk quota exceeded
can't start new thread|Thread creation failed: Resource temporarily unavailable|System unable to allocate necessary resources for OMP thread|pthread_create\S* (failed|error)?.*Resource temporarily unavailable|fork: (retry: )?Resource temporarily unavailable|cannot fork: Resource temporarily unavailable
LustreError: .*failed: rc = -(107|110|113)\b
execve\(\): [^:]+: No such file or directory|env: \S+: No such file or directory|unable to launch the specified application as it could not find an executable|exec: "[^"]+": executable file not found in \$PATH|(bash|sh): (line \d+: |\d+: )?[\w./~-]+: (command )?not found|sh: (line \d+: |\d+: )?/\S*bin/[^:]+: No such file or directory
[Ee]xec format error|cannot execute binary file|wrong ELF class: ELFCLASS
version [`']((GLIBC|GLIBCXX|CXXABI|GCC)_[0-9.]+)' not found
EDAC \S+: \d+ UE 
\bhfi1?_\d\b|\bhfi1 \d{4}:|\bhfi_userinit\b|PSM2 (can't|was)|Since psm2? can be used|[Pp]rovider is psm2|\bomni-?path\b
\d:\d+/IB\b|[Ll]ink[_ ]layer: *InfiniBand|\bSubnet Manager\b|\bopensm\b
\d:\d+/(RoCE|uRoCE)\b|[Ll]ink[_ ]layer: *Ethernet|\bRoCE( ?v?[12])?\b|\bROCE_V?2\b|\b([Ll]ocal|[Rr]emote) ?G[Ii][Dd]s?:? ?::ffff:\d
munge\.service: (Failed with result|Main process exited, code=exited, status=[1-9])|Failed to start MUNGE authentication service
forrtl: severe \((174|154|168|170)\)|Program received signal SIG(SEGV|ILL|BUS|FPE)
Stale (NFS )?file handle|\[Errno 116\]|\bESTALE\b
File "\S*(triton/runtime/(cache|jit|build|autotuner)|torch/_inductor/\w+|torch/utils/cpp_extension|deepspeed/ops/op_builder/builder|numba/core/caching|jax/_src/(compilation_cache|lru_cache)\w*)\.py", line \d
File locking failed in ADIOI?_\w+\(|This requires fcntl\(2\) to be implemented|\[Errno 37\] No locks available|unable to lock file, errno = (37|38|95|524)\b|(flock|fcntl|lockf)\S* .{0,40}(Function not implemented|Operation not supported|No locks available)
mmfs:? .*\[E\] .*(Lost membership|unmounted|Disconnected|Connection timed out|Stale file handle)|ceph: mds\d+ (hung|caps stale|reconnect denied)|libceph: (mon|osd|mds)\d+ .*(session lost|connect error)|beegfs: .*(Connect failed|Communication (error|timeout)|Receive (failed|timeout)|Not connected)|weka.*(lost connection|not responding)
Watchdog caught collective operation timeout|collective operation timeout: WorkNCCL
watchdog got stuck|Heartbeat monitor timed out
client socket has timed out|failed to connect to any network address
(MASTER_ADDR|c10d|getaddrinfo|gai error).*(Name or service not known|Temporary failure in name resolution|not be resolved|nodename nor servname)
Failed to window register segment
NCCLSymmetricMemory\.cu:\d+, invalid argument
ncclCommWindowRegister
out of shared memory|Bus error.*shm|insufficient shared memory
(unable to (open shared memory object|write to file|resize file|mmap \d+ bytes from file) <?/?\S*torch_\S+).*(No space left|\(28\)|Cannot allocate memory|\(12\))
unable to open shared memory object|torch_\S+> in read-write mode
Duplicate GPU detected|Multiple Ranks are using the same GPU
Register symmetric memory with an implicitly created
detected allocations from overlapping devices
ProcessGroupNCCL is only supported with GPUs, no GPUs found
Signal 7 \(SIGBUS\)|failed \(exitcode: -7\)|exitcode *: -7 
Signal 9 \(SIGKILL\)|failed \(exitcode: -9\)|exitcode *: -9 
waiting for clients\. \d+/\d+ clients joined
failed to pass monitoredBarrier
The hostname of the client socket cannot be retrieved
device used by this process is (currently )?unknown|Guessing device ID based on global rank
unable to (write to|allocate shared memory\(shm\) for) file </torch_
gloo/transport/tcp/\S+\] (Connection closed by peer|Read error .*Connection reset by peer|Write error .*Broken pipe)
(recv|send)\w* failed on SocketImpl|Failed to recv, got 0 bytes|Did the remote server shutdown or crash|Stop_waiting response is expected|Failed to check the .should dump. flag on TCPStore
enforce fail at inline_container\.cc:\d+\] \. unexpected pos \d+ vs \d+|PytorchStreamWriter failed writing file
DataLoader worker \(pid[^)]*\) is killed by signal: Killed
exits with return code = -9\b
number of required (GPUs|devices) exceeds the total number of available( GPUs| devices)?\.?\r?$
Detected mismatch between collectives on ranks
(^|^\S+: +|^\S+ +\| |<std(out|err)>: ?|pid=\d+[^)]*\) |^[A-Z]+:[\w.]+:|^\d{4}-\d\d-\d\d[T ]\S+ )(KeyError|IndexError|NameError|ZeroDivisionError|UnboundLocalError|SyntaxError|IndentationError|RecursionError)(:|$)
(^|^\S+: +|^\S+ +\| |<std(out|err)>: ?|pid=\d+[^)]*\) |^[A-Z]+:[\w.]+:|^\d{4}-\d\d-\d\d[T ]\S+ )(AttributeError|TypeError|NotImplementedError)(:|$)
PG GUID .*failure detected by watchdog at work sequence id: \d
detected by watchdog at work: \d+, last enqueued NCCL work: \d|PG status: last enqueued work: \d
Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=\d+, OpType=
RendezvousTimeoutError|DistStoreError: (Socket Timeout|wait timeout)
Error type: COLLECTIVE_(TYPE|DTYPE)_MISMATCH
Error type: SIZE_OR_SYNTAX_MISMATCH
Error type: COLLECTIVE_STATE_MISMATCH|Not all ranks joining collective
To our best knowledge, (ranks \[|the lagging/dead/mismatched ranks)|ranks that caused the desync
connect\(\) timed out\. Original timeout was \d+ ms
\[W[^]]*socket\.cpp:\d+\] \[c10d\] The client socket has failed to connect
is setting up NCCL communicator and retrieving ncclUniqueId
The connection to the C10d store has failed|RendezvousConnectionError
RendezvousClosedError|RendezvousGracefulExitError
NCCL communicator was aborted on rank|Some NCCL operations have failed or timed out|taking the entire process down
ProcessExitedException: process \d+ terminated with exit code|ProcessRaisedException|multiprocessing\.errors\.ChildFailedError
\[c10d\] The client socket cannot be initialized to connect to .*errno: 97
[Ii]nitializing (ddp|distributed): GLOBAL_RANK: \d+, MEMBER: \d+/\d
All (distributed|DDP|ddp) processes registered
(Value|Runtime)Error: host not found: |failed to connect/validate to host \S+ - (Name or service not known|.*name resolution|No address associated)
RuntimeError: Socket Timeout
NameError: (global )?name '(nccl|pynccl|rccl|hccl|cuda?|hip|nvml|pynvml|MPI|mpi)[A-Z_.]?\w*' is not defined
NameError: name '_C\w*' is not defined|'_OpNamespace' '_\w+' object has no attribute
[Ss]erver socket has failed to .*(errno: 99\b|Cannot assign requested address)
Errno 99\].*[Cc]annot assign requested address|ZMQError: Cannot assign requested address
ZMQError: No such device
[Ss]aving (the |latest |model |full |final )*checkpoint|[Gg]etting full model state dict|Loading checkpoint shards: +\d|Map \(num_proc=\d+\): +\d|Generating (train|validation) split: +\d|[Rr]unning tokenizer on dataset|Converting format of dataset|building (the )?(shuffle|sample|document)[ -]index
(ucp_context|wireup|select\.c).*no .*transport|no (usable|active) transports|Destination is unreachable
network device .* is not available, please use one or more of
connect\(fd=\d+, dest_addr=[0-9a-f.:]+\) failed: (Connection refused|Connection timed out|No route to host|Network is unreachable)
maximal number of files that could be opened simultaneously was reached
Not enough memory to write total of \d+ bytes\. Please check that /dev/shm
Couldn't enable GPUDirect RDMA\. Please make sure nv_peer_mem
ibv_fork_init\(\) (was disabled or failed, yet a fork|failed)
UCX +WARN +unused (environment|env) variables?: \S+ ?\(.*maybe:
UCX +ERROR +Invalid value for \S+: '.*'\. Expected:
UCX +ERROR +Transport retry count exceeded on
UCX +(WARN|DIAG|ERROR) +ibv_open_device\(\S+\) failed
Connection reset by remote peer
UCX[ ]+ERROR[ ]+ibv_create_ah\(.*failed: (Invalid argument|No such device|Connection timed out|Network is unreachable)
mm_posix\.c.*open.*Permission denied.*?/proc/\d+/fd/
Transport retry count exceeded on \S+:\d+/RoCE
Transport retry count exceeded on \S+:\d+/IB\b
UD endpoint 0x\w+ to .{0,80}unhandled timeout error
\bEndpoint timeout\b
ibv_query_gid\(dev=\S+ port=\d+ index=\d+\) failed|failed to find a gid which (un)?matches|both GID_INDEX and ROCE_SUBNET_LIST are specified
unable to find specified pkey 0x|there is no valid pkey to use on
shmget\(size=.*(No space|Cannot allocate|Invalid argument).*please check shared memory limits by 'ipcs -l'
failed to open ipc mem handle\. addr:
UCX +\w+ +failed to open gdr copy|could not open gdr copy, built for v
multi-node NVLINK support is requested but not supported
shmat\(shmid=\d+\) failed: (Invalid argument|Identifier removed)
mlx5dv_devx_\w+\([^)]*\) failed: (Protocol not supported|Operation not supported|Inappropriate ioctl|Function not implemented)|ibv_(exp_)?query_device\w*\([^)]*\) (returned|failed).*Inappropriate ioctl
no cuda context bound to calling thread|(memcpy|cuda memory) without active context|no active primary CUDA context on any device
max_rd_atomic values do not match on peers|asymmetric endpoint configuration is not supported|inconsistent CUDA IPC remote memory handle mapping
UCX version \d+\.\d+\.\d+ is too old, please install
shmget\(size=.*(Operation not permitted|Permission denied)
connect\(fd=\d+, dest_addr=172\.17\.\d+\.\d+:\d+\) failed: 
[Gg]uest ?[Cc]onfig.*(mismatch|differ|expect|fail|warn|error)|(FasTrak|TCPXO?|gIB).*(mismatch|unrecommended|not recommended|misconfig)
Number of GPUs detected in the PCI tree \d+ is not equal
(?i)(rxdm|fastrak|tcpxo?|tcpgpudmarxd).*(connection refused|failed to connect|no such file|connect\(\) error|not running|unavailable)
IBV_WC_LOC_LEN_ERR|[Ll]ocal length error
IBV_WC_RETRY_EXC_ERR|transport retry counter exceeded
TRANSPORT_RETRY_EXC_ERR
local access violation work queue error
IBV_WC_REM_ACCESS_ERR|[Rr]emote access error
IBV_WC_LOC_PROT_ERR|[Ll]ocal protection error
ibv_(create|alloc|exp_create)_\w+(\([^)]*\))? ?failed.*(Cannot allocate memory|ENOMEM|errno: 12\b)
ibv_(exp_)?reg_mr\(?.*failed: Cannot allocate memory|[Pp]lease set max locked memory
RLIMIT_MEMLOCK is \d+ bytes
libibverbs: Warning: (couldn't load driver|no userspace device-specific driver found)
libibverbs: Warning: fork\(\)-safety requested but init failed
(ibv_reg_mr\w*(\([^)]*\))?|[Rr]egister\w* ?(Rdma)?(memory|Memory|MR)\w*|fi_mr_reg(attr)?) ?([Ff]ailed|error) ?[:!,(].*(Bad address|errno:? ?14\b)|Unable to register MR.*: Bad address|RegisterRdmaMemoryRegion failed!.*errno:(14|22)\b
(^|: )No IB devices found|Failed to get IB devices list|/dev/infiniband\S*: No such file
([Ff]ailed to register|[Cc]ould not register|[Cc]ouldn't register|[Uu]nable to register) (\S+ ){0,3}(memory|MR|region|buffer)\b.*(Cannot allocate memory|ENOMEM|errno:? ?12\b|\[12\])
([Ff]ailed to register|[Cc]ould not register|[Cc]ouldn't register|[Uu]nable to register) (\S+ ){0,3}(memory|MR|region|buffer)\b.*(Bad address|EFAULT|errno:? ?14\b|\[14\])
([Ff]ailed to register|[Cc]ould not register|[Cc]ouldn't register|[Uu]nable to register) (\S+ ){0,3}(memory|MR|region|buffer)\b.*(Resource temporarily unavailable|EAGAIN|\[11\])
[Nn]o (suitable|valid|usable|matching) GID|[Ff]ailed to (find|get|query) .{0,30}\b(GID|gid)\b
(without|[Rr]equires?|needs?|missing|load) (the )?(nvidia|nv|amdgpu)[-_ ]?peer[-_]?mem|(nvidia|nv)[-_]peer[-_]?mem\w* (kernel )?(module )?(is )?(not |missing)
No available RNIC
ibv_modify_qp\w* failed.{0,12}\(?(errno:? ?19\b|No such device)
ibv_modify_qp\w* failed.{0,12}\(?(errno:? ?(101|110|113)\b|Connection timed out|Network is unreachable|No route to host)|[Ff]ailed to modify QP( \d+)? to RTR
Couldn't allocate MR|failed to create mr\b
Failed status 12: wr_id
active_mtu: +(256|512|1024) \([123]\)
^ *Mtu +: (256|512|1024)\[B\]
[Dd]river \S+ does not support the kernel ABI of \d
version [`'](IBVERBS_PRIVATE|MLX5|MLX4|EFA|RDMACM)_[0-9.]+' not found|symbol lookup error: .*undefined symbol: (_*ibv_|verbs_|mlx5dv_|efadv_)|(dlopen|dlerror|[Cc]ould not (load|open)).*undefined symbol: (_*ibv_|verbs_|mlx5dv_|efadv_)|(libibverbs|libmlx5|libefa)\S*: version `\w+' not found
(Failed to open|[Uu]nable to (open|load)|could not (open|load)) (shared library )?libibverbs\.so|libibverbs\.so\S*: cannot open shared object file
increasing PF_LOG_BAR_SIZE|mlx5dv_devx_alloc_uar\([^)]*\) failed: Cannot allocate memory
RDMA_CM_EVENT_(ADDR_ERROR|ROUTE_ERROR)
RDMA_CM_EVENT_(UNREACHABLE|REJECTED)
no userspace device-specific driver found for /sys/class/infiniband_verbs
n_gids_found=0\r?$
([Ff]ailed to|[Cc]ould not|[Cc]ouldn't|[Uu]nable to|[Cc]annot) register (\S+ ){0,2}(GPU|CUDA|cuda|device|HIP|ROCm|hip)[ -]?(memory|MR|mr|buffer|region|RDMA)
([Aa]sync|[Aa]synchronous) (fatal )?[Ee]vent\b[^:]*:? *:? ?(mlx\S+ )?(port error|IBV_EVENT_PORT_ERR)
([Aa]sync|[Aa]synchronous) (fatal )?[Ee]vent\b[^:]*:? *:? ?(local catastrophic error|IBV_EVENT_DEVICE_FATAL)
ibv_(exp_)?modify_qp\S* failed:? .*Connection timed out|[Ff]ailed to modify QP.*(RTR|INIT).*Connection timed out
No RDMA devices found
libibverbs: Fatal: couldn't read uverbs ABI version
([Ll]ost|[Ll]osing) (the )?connection (to|with) |([Pp]eer|[Rr]emote|[Ww]orker|[Rr]ank|[Tt]ask|[Dd]aemon)\b.*\b(died|exited unexpectedly|is dead|crashed|disconnected|went away|stopped responding)|[Hh]eartbeat.*(timed? ?out|lost|missed|expired)
([Tt]imed out|[Tt]imeout|[Dd]eadline).*\b(connect\w*|waiting for|rendezvous|peers?|workers?|ranks?|nodes?|join\w*)\b|\b([Cc]onnect\w*|[Ww]aiting for|joining)\b.*([Tt]imed out|[Tt]imeout)|DEADLINE_EXCEEDED
[Vv]ersion mismatch|[Mm]ismatch(ed)? versions?|[Ii]ncompatible versions?|[Vv]ersions? .*(not compatible|incompatible)|version .*is too (old|new)|ABI mismatch|[Pp]rotocol version .*(unsupported|not supported|differs)|(compiled|built) (with|against|for) .*\bbut\b
std::bad_alloc|^(\S+\.)?MemoryError(:|$)|[Ff]ailed to allocate \d+ ?\w* of (host|pinned|system) memory|(host|system|CPU) (is |ran )?out of memory|[Nn]ot enough (host |system )?memory|Unable to allocate .* for an array
[Dd]evice or resource busy|\b(port|address|device|GPU|socket)\b.*\b(already|still) (in use|taken|allocated|held)
terminate called (after throwing|without an active)|Fatal Python error: |^panic: |\bcore dumped\b|[Aa]ssertion .* failed\b|INTERNAL ASSERT FAILED|double free or corruption|free\(\): invalid|malloc\(\): |stack smashing detected
^(\[rank\d+\]:[ ]*|\[default\d+\]: ?|\d+: |\([\w. -]+pid=\d+[^)]*\) )?[A-Za-z_][\w.]*(Error|Exception)(: |$)
error: (unrecognized arguments|the following arguments are required|argument \S+:|invalid choice)|[Uu]nrecognized (command[- ]line )?option|[Uu]nknown (command[- ]line )?(option|flag|argument)\b|[Ii]nvalid option --
\b([Uu]ncorrectable|[Uu]nrecoverable)\b.*\b([Ee]rrors?|ECC)\b|\b[Hh]ardware ([Ee]rror|fault|failure)\b|[Mm]achine check|[Pp]arity error
([Rr]eceived|[Cc]aught|[Gg]ot) (a )?(SIGTERM|SIGINT|signal (15|2)\b)|([Jj]ob|[Rr]un|[Tt]ask|[Ss]tep|[Pp]od) .*\b(was|has been|been) (cancell?ed|evicted|preempted|terminated by)|received a shutdown signal
\b(401|403) (Client Error|Unauthorized|Forbidden)\b|\bunauthorized: |[Aa]uthentication (required|failed)|[Ii]nvalid (API key|token|credentials)
([Mm]emory|[Bb]uffer|MR) registration (has )?failed|[Ff]ail(ed|ure)? (to|in) (register|reg) (the )?(memory|buffer|mr|MR)\b
[Cc]hecksum (mismatch|error|does not match)|\b([Ff]ile|[Aa]rchive|[Cc]heckpoint|[Ii]mage)\b.*\b(corrupt(ed)?|truncated|damaged)\b|\b(corrupt(ed)?|truncated|damaged) ([Ff]ile|[Aa]rchive|[Cc]heckpoint|[Ii]mage)\b|[Bb]ad magic number
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (48|62|74|79|95|136|140|143)\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (46|109|110|155|156|158)\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (119|120)\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): 154, .* to 0x[0-9a-f]+ \((GPU Reset Required|Drain and Reset|PF FLR|Bus Reset)
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): 154, .* to 0x[0-9a-f]+ \((Node Reboot|OS Reboot|System Reboot)
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): 154, .* to 0x[0-9a-f]+ \(Drain P2P
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): 154, .* to 0x0 \(None\)
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (64|157)\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): 63\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (94|171|172)\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (11|13|25|31|32|69|80)\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (43|44|45|137)\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (144|145|146|147|148|149|150), [A-Z0-9_]+ Fatal\b
NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (144|145|146|147|148|149|150), [A-Z0-9_]+ Non-?fatal\b
nvidia-nvswitch\d+: SXid \(PCI:[0-9a-fA-F:.]+\): \d+, Fatal\b
nvidia-nvswitch\d+: SXid \(PCI:[0-9a-fA-F:.]+\): \d+, Non-fatal\b
