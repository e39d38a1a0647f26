"""Messages and enums of gangway.v1, and Google's that they use. Made by `npm run generate`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any as _Any
from typing import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence, TypeVar, overload

_M = TypeVar("_M", bound="Message")
_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")

class Message:
    """A protobuf message. It equals another one of its type with the same fields."""
    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...
    @classmethod
    def FromString(cls: type[_M], data: bytes) -> _M: ...
    def ParseFromString(self, data: bytes) -> int: ...
    def MergeFromString(self, data: bytes) -> int: ...
    def CopyFrom(self: _M, other: _M) -> None: ...
    def MergeFrom(self: _M, other: _M) -> None: ...
    def Clear(self) -> None: ...
    def ClearField(self, field_name: str) -> None: ...
    def HasField(self, field_name: str) -> bool: ...
    def WhichOneof(self, oneof_group: str) -> str | None: ...
    def ListFields(self) -> list[tuple[_Any, _Any]]: ...
    def ByteSize(self) -> int: ...
    def IsInitialized(self) -> bool: ...
    def SetInParent(self) -> None: ...

class RepeatedScalar(MutableSequence[_T]):
    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> MutableSequence[_T]: ...
    @overload
    def __setitem__(self, index: int, value: _T) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[_T]) -> None: ...
    def __delitem__(self, index: int | slice) -> None: ...
    def __len__(self) -> int: ...
    def insert(self, index: int, value: _T) -> None: ...

class RepeatedMessage(Sequence[_T]):
    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[_T]: ...
    def __delitem__(self, index: int | slice) -> None: ...
    def __len__(self) -> int: ...
    def add(self, **fields: _Any) -> _T: ...
    def append(self, value: _T) -> None: ...
    def extend(self, values: Iterable[_T]) -> None: ...

class ScalarMap(MutableMapping[_K, _V]):
    def __getitem__(self, key: _K) -> _V: ...
    def __setitem__(self, key: _K, value: _V) -> None: ...
    def __delitem__(self, key: _K) -> None: ...
    def __iter__(self) -> Iterator[_K]: ...
    def __len__(self) -> int: ...

class MessageMap(Mapping[_K, _V]):
    def __getitem__(self, key: _K) -> _V:
        """The message of this key. A new key gets an empty message."""
    def __delitem__(self, key: _K) -> None: ...
    def __iter__(self) -> Iterator[_K]: ...
    def __len__(self) -> int: ...
    def get_or_create(self, key: _K) -> _V: ...

class Duration(Message):
    seconds: int
    nanos: int
    def __init__(
        self,
        *,
        seconds: int | None = ...,
        nanos: int | None = ...,
    ) -> None: ...
    def ToTimedelta(self) -> timedelta: ...
    def FromTimedelta(self, td: timedelta) -> None: ...
    def ToJsonString(self) -> str: ...
    def FromJsonString(self, value: str) -> None: ...
    def ToMilliseconds(self) -> int: ...
    def FromMilliseconds(self, millis: int) -> None: ...
    def FromSeconds(self, seconds: int) -> None: ...

class Timestamp(Message):
    seconds: int
    nanos: int
    def __init__(
        self,
        *,
        seconds: int | None = ...,
        nanos: int | None = ...,
    ) -> None: ...
    def ToDatetime(self) -> datetime: ...
    def FromDatetime(self, dt: datetime) -> None: ...
    def ToJsonString(self) -> str: ...
    def FromJsonString(self, value: str) -> None: ...
    def GetCurrentTime(self) -> None: ...
    def ToNanoseconds(self) -> int: ...
    def FromSeconds(self, seconds: int) -> None: ...

class AccessSource(int):
    """Where a role or a binding comes from."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> AccessSource: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
ACCESS_SOURCE_UNSPECIFIED: AccessSource
ACCESS_SOURCE_BUILT_IN: AccessSource
"""Every installation has it."""
ACCESS_SOURCE_FILE: AccessSource
"""The file GANGWAY_ACCESS_FILE of the server that answers."""
ACCESS_SOURCE_CALL: AccessSource
"""A call made it."""

class WhoAmIRequest(Message):
    def __init__(self) -> None: ...

class WhoAmIResponse(Message):
    @property
    def identity(self) -> Identity: ...
    def __init__(
        self,
        *,
        identity: Identity | None = ...,
    ) -> None: ...

class Identity(Message):
    """A caller."""
    subject: str
    """The name of the caller: the issuer's prefix and the subject of a token, the SPIFFE URI or `dns:` and the DNS
    name of a certificate, `system:serviceaccount:NAMESPACE:NAME`, `robot:NAME`, or `anonymous` where the
    service asks for no credentials.
    """
    @property
    def groups(self) -> RepeatedScalar[str]:
        """The caller's groups: those of a token's claim with the issuer's prefix, `org:` and each organization of
        a certificate.
        """
    method: str
    """How the caller was authenticated: `oidc`, `kubernetes`, `certificate`, `robot` or `anonymous`."""
    issuer: str
    """The issuer of the token. Empty: there is no token."""
    @property
    def expire_time(self) -> Timestamp:
        """When the credential expires. Omitted: it does not."""
    def __init__(
        self,
        *,
        subject: str | None = ...,
        groups: Iterable[str] | None = ...,
        method: str | None = ...,
        issuer: str | None = ...,
        expire_time: Timestamp | None = ...,
    ) -> None: ...

class RobotToken(Message):
    """A caller that is a program, with one secret token."""
    name: str
    owner: str
    """The subject of the caller that made it."""
    @property
    def create_time(self) -> Timestamp: ...
    @property
    def expire_time(self) -> Timestamp:
        """When the token expires."""
    @property
    def last_use_time(self) -> Timestamp:
        """When the token was last shown, to within a minute. Omitted: never."""
    @property
    def revoke_time(self) -> Timestamp:
        """When the token was revoked. Omitted: it was not."""
    @property
    def scope(self) -> AccessScope:
        """Where the robot belongs: a namespace, a project, or if empty the installation. It says who may see and
        revoke the robot, and whose max_robot_tokens counts it. It gives the robot no permission: bindings do.
        """
    def __init__(
        self,
        *,
        name: str | None = ...,
        owner: str | None = ...,
        create_time: Timestamp | None = ...,
        expire_time: Timestamp | None = ...,
        last_use_time: Timestamp | None = ...,
        revoke_time: Timestamp | None = ...,
        scope: AccessScope | None = ...,
    ) -> None: ...

class CreateRobotTokenRequest(Message):
    name: str
    """A DNS label. Required."""
    @property
    def ttl(self) -> Duration:
        """How long the token counts: at least a minute and at most 366 days. Omitted: 90 days."""
    @property
    def scope(self) -> AccessScope:
        """Where the robot belongs: a namespace that exists, or a project. Omitted: the installation."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        ttl: Duration | None = ...,
        scope: AccessScope | None = ...,
    ) -> None: ...

class CreateRobotTokenResponse(Message):
    @property
    def robot(self) -> RobotToken: ...
    secret: str
    """The token. The service does not keep it, and never returns it again."""
    def __init__(
        self,
        *,
        robot: RobotToken | None = ...,
        secret: str | None = ...,
    ) -> None: ...

class ListRobotTokensRequest(Message):
    page_size: int
    """The most robots that are returned. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListRobotTokensResponse(Message):
    @property
    def robots(self) -> RepeatedMessage[RobotToken]: ...
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        robots: Iterable[RobotToken] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class RevokeRobotTokenRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class RevokeRobotTokenResponse(Message):
    @property
    def robot(self) -> RobotToken: ...
    def __init__(
        self,
        *,
        robot: RobotToken | None = ...,
    ) -> None: ...

class AccessScope(Message):
    """The part of an installation that a role is bound at. Empty: everything."""
    project: str
    """A project, with the namespaces that belong to it."""
    namespace: str
    queue: str
    """A queue, with all queues below it."""
    pool_prefix: str
    """A pool, and all pools whose names go on after it with `:` or `/`."""
    cluster: str
    def __init__(
        self,
        *,
        project: str | None = ...,
        namespace: str | None = ...,
        queue: str | None = ...,
        pool_prefix: str | None = ...,
        cluster: str | None = ...,
    ) -> None: ...

class AccessRole(Message):
    """A named set of permissions."""
    name: str
    """A DNS label. Required."""
    @property
    def permissions(self) -> RepeatedScalar[str]:
        """Such as `jobs.create`; at least one. A role of a later version of the server may have permissions that
        this one does not know.
        """
    source: AccessSource
    """Output only."""
    resource_version: str
    """Output only. Empty: no call made the role."""
    @property
    def create_time(self) -> Timestamp:
        """Output only. Omitted: no call made the role."""
    created_by: str
    """Output only. The subject of the caller that made it. Empty: no call did."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        permissions: Iterable[str] | None = ...,
        source: AccessSource | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        created_by: str | None = ...,
    ) -> None: ...

class AccessBinding(Message):
    """A role that a subject or a group has at a scope."""
    name: str
    """A DNS label. Required."""
    subject: str
    group: str
    role: str
    """The name of the role. Required."""
    @property
    def scope(self) -> AccessScope:
        """Omitted: the installation."""
    source: AccessSource
    """Output only."""
    resource_version: str
    """Output only. Empty: no call made the binding."""
    @property
    def create_time(self) -> Timestamp:
        """Output only. Omitted: no call made the binding."""
    created_by: str
    """Output only. The subject of the caller that made it. Empty: no call did."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        subject: str | None = ...,
        group: str | None = ...,
        role: str | None = ...,
        scope: AccessScope | None = ...,
        source: AccessSource | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        created_by: str | None = ...,
    ) -> None: ...

class CheckAccessRequest(Message):
    permission: str
    """Such as `jobs.create`. Required."""
    @property
    def scope(self) -> AccessScope:
        """Omitted: the installation."""
    def __init__(
        self,
        *,
        permission: str | None = ...,
        scope: AccessScope | None = ...,
    ) -> None: ...

class CheckAccessResponse(Message):
    allowed: bool
    def __init__(
        self,
        *,
        allowed: bool | None = ...,
    ) -> None: ...

class CreateRoleRequest(Message):
    @property
    def role(self) -> AccessRole:
        """Required."""
    def __init__(
        self,
        *,
        role: AccessRole | None = ...,
    ) -> None: ...

class CreateRoleResponse(Message):
    @property
    def role(self) -> AccessRole: ...
    def __init__(
        self,
        *,
        role: AccessRole | None = ...,
    ) -> None: ...

class GetRoleRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class GetRoleResponse(Message):
    @property
    def role(self) -> AccessRole: ...
    def __init__(
        self,
        *,
        role: AccessRole | None = ...,
    ) -> None: ...

class ListRolesRequest(Message):
    page_size: int
    """The most roles that are returned. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListRolesResponse(Message):
    @property
    def roles(self) -> RepeatedMessage[AccessRole]:
        """In the order of their names."""
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        roles: Iterable[AccessRole] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class DeleteRoleRequest(Message):
    name: str
    """Required."""
    resource_version: str
    """The version that was read. Empty: any version."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        resource_version: str | None = ...,
    ) -> None: ...

class DeleteRoleResponse(Message):
    def __init__(self) -> None: ...

class CreateBindingRequest(Message):
    @property
    def binding(self) -> AccessBinding:
        """Required."""
    def __init__(
        self,
        *,
        binding: AccessBinding | None = ...,
    ) -> None: ...

class CreateBindingResponse(Message):
    @property
    def binding(self) -> AccessBinding: ...
    def __init__(
        self,
        *,
        binding: AccessBinding | None = ...,
    ) -> None: ...

class GetBindingRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class GetBindingResponse(Message):
    @property
    def binding(self) -> AccessBinding: ...
    def __init__(
        self,
        *,
        binding: AccessBinding | None = ...,
    ) -> None: ...

class ListBindingsRequest(Message):
    page_size: int
    """The most bindings that are returned. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListBindingsResponse(Message):
    @property
    def bindings(self) -> RepeatedMessage[AccessBinding]:
        """In the order of their names."""
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        bindings: Iterable[AccessBinding] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class DeleteBindingRequest(Message):
    name: str
    """Required."""
    resource_version: str
    """The version that was read. Empty: any version."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        resource_version: str | None = ...,
    ) -> None: ...

class DeleteBindingResponse(Message):
    def __init__(self) -> None: ...

class ClusterState(int):
    """How a cluster is. CORDONED is no state: it is what an operator has asked for."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> ClusterState: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
CLUSTER_STATE_UNSPECIFIED: ClusterState
CLUSTER_STATE_ACTIVE: ClusterState
"""It answers, and takes gangs."""
CLUSTER_STATE_UNREACHABLE: ClusterState
"""It does not answer. Its gangs keep their admissions and tokens; whether their pods run is not known."""
CLUSTER_STATE_UNUSABLE: ClusterState
"""It answers, and this service cannot use it: `problem` says why. Waiting does not help."""
CLUSTER_STATE_LOST: ClusterState
"""It has not answered for so long that gangs which never ran there go elsewhere; or an operator has said that
it is gone. Gangs of which a pod was seen running keep their admissions and tokens. It is RETURNING once it
answers.
"""
CLUSTER_STATE_RETURNING: ClusterState
"""It was lost or forgotten, or the database was restored, and it answers. It is ACTIVE, and takes gangs, once
what gangs left there is deleted and every cluster is adopted.
"""

class GangScheduler(int):
    """A scheduler of the cluster that understands PodGroups. Jobs name its queues and priority classes by the
    names that they have in the cluster.
    """
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> GangScheduler: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
GANG_SCHEDULER_UNSPECIFIED: GangScheduler
GANG_SCHEDULER_NONE: GangScheduler
"""The scheduler of Kubernetes, which binds pods one by one. Gangway still admits the gang as a whole."""
GANG_SCHEDULER_VOLCANO: GangScheduler
"""Volcano: PodGroups of scheduling.volcano.sh/v1beta1, scheduler name `volcano`. Pods are created once Volcano
has accepted the group.
"""
GANG_SCHEDULER_SCHEDULER_PLUGINS: GangScheduler
"""Scheduler plugins: PodGroups of scheduling.x-k8s.io/v1alpha1, scheduler name `scheduler-plugins-scheduler`."""

class NodeState(int):
    """A state of a node. A node may be in several of the last three."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> NodeState: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
NODE_STATE_UNSPECIFIED: NodeState
NODE_STATE_READY: NodeState
"""It takes pods: it is in none of the other states."""
NODE_STATE_NOT_READY: NodeState
"""Its condition Ready is not True."""
NODE_STATE_CORDONED: NodeState
"""It is cordoned in Kubernetes."""
NODE_STATE_LEAVING: NodeState
"""It is being deleted."""

class NodeView(int):
    """How much of a node is shown."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> NodeView: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
NODE_VIEW_UNSPECIFIED: NodeView
NODE_VIEW_BASIC: NodeView
"""Everything except labels, taints, resources other than in `gpus`, and the pods of holders."""
NODE_VIEW_FULL: NodeView
"""Everything."""

class Cluster(Message):
    """A Kubernetes cluster. Administrators set name, labels, flavors, topology and gang_scheduler; all other
    fields are output only, except resource_version in UpdateCluster.
    """
    name: str
    """A lower-case DNS name of at most 63 characters. Required."""
    @property
    def labels(self) -> ScalarMap[str, str]:
        """Labels that jobs select clusters by (spec.placement.cluster_selector). At most 64, with keys and values
        as in Kubernetes.
        """
    @property
    def flavors(self) -> RepeatedMessage[ClusterFlavor]:
        """The flavors that the cluster's nodes have, at most 64. Each flavor becomes a pool if no pool has its
        name.
        """
    cordoned: bool
    """True: no gang is admitted to the cluster."""
    reachable: bool
    """True: the state is ACTIVE. No gang is admitted to a cluster that is not reachable."""
    simulated: bool
    """True: the server itself simulates the cluster. No program runs there."""
    resource_version: str
    """The version of the record; it grows with every change of an administrator. In UpdateCluster: the version
    that the change is based on; empty accepts any version.
    """
    @property
    def create_time(self) -> Timestamp: ...
    @property
    def observe_time(self) -> Timestamp:
        """When the capacity was last recorded, which happens only if it has changed. Omitted: never."""
    @property
    def allocatable(self) -> ScalarMap[str, str]:
        """The allocatable resources of all schedulable nodes: Kubernetes quantities by resource."""
    @property
    def free(self) -> ScalarMap[str, str]:
        """The free part of `allocatable`: Kubernetes quantities by resource."""
    nodes: int
    """The number of all nodes."""
    gang_scheduler: GangScheduler
    """The scheduler that places a gang's pods together. Unspecified: NONE in RegisterCluster, no change in
    UpdateCluster. An admission keeps the scheduler that it started with.
    """
    problem: str
    """Why the server cannot use the cluster, such as credentials that it does not accept any more. Empty: it can."""
    uid: str
    """The uid of the cluster's namespace kube-system, which tells it from every other cluster. Empty: the server
    has not reached the cluster yet, or may not read that namespace.
    """
    retired: bool
    """True: the cluster is simulated, and takes no gangs since a real one was registered. It goes away once its
    gangs have ended.
    """
    @property
    def topology(self) -> Topology:
        """The levels of the cluster's nodes. Omitted: none in RegisterCluster, no change in UpdateCluster. Answers
        always have it.
        """
    state: ClusterState
    """How the cluster is now."""
    @property
    def state_since(self) -> Timestamp:
        """Since when it does not answer, cannot be used, or has returned. Omitted: it is ACTIVE, or has not
        answered yet.
        """
    @property
    def unadopted_since(self) -> Timestamp:
        """Output only. When the database was restored from a back-up, if nobody has adopted the cluster since: see
        AdoptCluster. Omitted: it is adopted.
        """
    def __init__(
        self,
        *,
        name: str | None = ...,
        labels: Mapping[str, str] | None = ...,
        flavors: Iterable[ClusterFlavor] | None = ...,
        cordoned: bool | None = ...,
        reachable: bool | None = ...,
        simulated: bool | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        observe_time: Timestamp | None = ...,
        allocatable: Mapping[str, str] | None = ...,
        free: Mapping[str, str] | None = ...,
        nodes: int | None = ...,
        gang_scheduler: GangScheduler | None = ...,
        problem: str | None = ...,
        uid: str | None = ...,
        retired: bool | None = ...,
        topology: Topology | None = ...,
        state: ClusterState | None = ...,
        state_since: Timestamp | None = ...,
        unadopted_since: Timestamp | None = ...,
    ) -> None: ...

class Topology(Message):
    """The levels of nodes, coarse to fine: which of them are near each other. The racks and blocks with the
    fewest free devices fill up first, so that others stay whole. Without levels, names decide between nodes
    with equal resources.
    """
    @property
    def levels(self) -> RepeatedMessage[TopologyLevel]:
        """At most 16, coarse to fine. Names and labels are unique; kubernetes.io/hostname can only be the label of
        the last one. Empty: no levels.
        """
    def __init__(
        self,
        *,
        levels: Iterable[TopologyLevel] | None = ...,
    ) -> None: ...

class TopologyLevel(Message):
    """A level: nodes with the same value of its label, and of the labels of all coarser levels, are one domain
    of it.
    """
    name: str
    """The name of the level, such as rack. It should be the same in all clusters. Required."""
    label: str
    """The label of nodes whose value names the domain, such as topology.kubernetes.io/rack. Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        label: str | None = ...,
    ) -> None: ...

class ClusterFlavor(Message):
    """A flavor of a cluster: an extended resource on certain nodes."""
    name: str
    """The pool that the flavor is counted in, such as gpu/h100. Required, and unique within the cluster."""
    resource: str
    """The extended resource that pods request, such as nvidia.com/gpu. Required."""
    @property
    def node_labels(self) -> ScalarMap[str, str]:
        """The labels of the flavor's nodes, at most 64. Pods that are admitted with this flavor require them."""
    nodes: int
    """Output only: how many nodes carry these labels."""
    allocatable: str
    """Output only: how much of the resource the schedulable ones of these nodes have, and how much of it is free,
    as Kubernetes quantities. Empty: the cluster was not observed yet.
    """
    free: str
    problem: str
    """Output only: why no node belongs to the flavor, such as a label that no node carries. Gangs wait until this
    is repaired. Empty: a node does, or the cluster was not observed yet.
    """
    @property
    def topology(self) -> Topology:
        """The levels of the flavor's nodes. Omitted: those of the cluster. Empty: none."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        resource: str | None = ...,
        node_labels: Mapping[str, str] | None = ...,
        nodes: int | None = ...,
        allocatable: str | None = ...,
        free: str | None = ...,
        problem: str | None = ...,
        topology: Topology | None = ...,
    ) -> None: ...

class GetClusterRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class GetClusterResponse(Message):
    @property
    def cluster(self) -> Cluster: ...
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
    ) -> None: ...

class ListClustersRequest(Message):
    def __init__(self) -> None: ...

class ListClustersResponse(Message):
    @property
    def clusters(self) -> RepeatedMessage[Cluster]: ...
    def __init__(
        self,
        *,
        clusters: Iterable[Cluster] | None = ...,
    ) -> None: ...

class CordonClusterRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class CordonClusterResponse(Message):
    @property
    def cluster(self) -> Cluster: ...
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
    ) -> None: ...

class UncordonClusterRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class UncordonClusterResponse(Message):
    @property
    def cluster(self) -> Cluster: ...
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
    ) -> None: ...

class GetCapacityRequest(Message):
    name: str
    """The name of a cluster. Empty: all clusters that the caller may see."""
    @property
    def filter(self) -> NodeFilter:
        """Omitted: all nodes."""
    order_by: str
    """cluster (then by name), name (then by cluster), held desc (by GPUs, then by free ones, cluster and name) or
    free desc (by GPUs, then by held ones, cluster and name). Empty: cluster.
    """
    page_size: int
    """At most 1,000. 0: 1,000. A page may hold fewer nodes, so that the response stays below 4 MiB."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    newer_than: str
    """The version of the first page of an earlier answer to a call with the same name and filter: the answer then
    has only the nodes that have changed since, unless `complete` of their cluster says otherwise. Clusters that
    it does not list are gone. Empty: all nodes.
    """
    view: NodeView
    """Unspecified: FULL."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        filter: NodeFilter | None = ...,
        order_by: str | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
        newer_than: str | None = ...,
        view: NodeView | None = ...,
    ) -> None: ...

class NodeFilter(Message):
    """Selects nodes. A node must pass every field; an empty field passes every node."""
    @property
    def names(self) -> RepeatedScalar[str]:
        """At most 1,000 names; a node must have one of them."""
    @property
    def flavors(self) -> RepeatedScalar[str]:
        """A node must have one of these flavors."""
    @property
    def states(self) -> RepeatedScalar[NodeState]:
        """A node must be in one of these states."""
    def __init__(
        self,
        *,
        names: Iterable[str] | None = ...,
        flavors: Iterable[str] | None = ...,
        states: Iterable[NodeState] | None = ...,
    ) -> None: ...

class GetCapacityResponse(Message):
    cluster: str
    """The name of the cluster that the request names."""
    @property
    def nodes(self) -> RepeatedMessage[Node]:
        """Empty: no node passes, or no cluster was observed yet."""
    @property
    def observe_time(self) -> Timestamp:
        """When the capacity of the named cluster was last recorded. Omitted: never, or the request names no
        cluster.
        """
    next_page_token: str
    """Empty: this is the last page."""
    total: int
    """How many nodes all pages have together."""
    version: str
    """The state that this page shows, for newer_than. Empty: there are too many clusters for it."""
    @property
    def clusters(self) -> RepeatedMessage[ObservedCluster]:
        """The clusters that the nodes are of, ordered by name."""
    def __init__(
        self,
        *,
        cluster: str | None = ...,
        nodes: Iterable[Node] | None = ...,
        observe_time: Timestamp | None = ...,
        next_page_token: str | None = ...,
        total: int | None = ...,
        version: str | None = ...,
        clusters: Iterable[ObservedCluster] | None = ...,
    ) -> None: ...

class ObservedCluster(Message):
    """A cluster whose nodes were asked for."""
    name: str
    @property
    def observe_time(self) -> Timestamp:
        """When its capacity was last recorded, which happens only if it has changed. Omitted: never."""
    reachable: bool
    """False: the cluster does not answer its observer. Its nodes are shown as they were last seen."""
    cordoned: bool
    """True: no gang is admitted to the cluster."""
    simulated: bool
    """True: the server itself simulates the cluster."""
    complete: bool
    """True: the pages have all nodes of the cluster that pass. False: only those that have changed since
    newer_than.
    """
    @property
    def removed(self) -> RepeatedScalar[str]:
        """The nodes that are gone since newer_than, or do not pass the filter any more. On the first page only."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        observe_time: Timestamp | None = ...,
        reachable: bool | None = ...,
        cordoned: bool | None = ...,
        simulated: bool | None = ...,
        complete: bool | None = ...,
        removed: Iterable[str] | None = ...,
    ) -> None: ...

class Node(Message):
    """A node of a cluster, its resources, and who holds them."""
    name: str
    @property
    def labels(self) -> ScalarMap[str, str]: ...
    @property
    def taints(self) -> RepeatedScalar[str]:
        """Written as KEY=VALUE:EFFECT."""
    unschedulable: bool
    """True: the node takes no new pods, because it is cordoned, not ready, or being deleted."""
    @property
    def allocatable(self) -> ScalarMap[str, str]:
        """Kubernetes quantities by resource."""
    @property
    def free(self) -> ScalarMap[str, str]:
        """Allocatable less the requests of all pods on the node. Kubernetes quantities by resource."""
    cluster: str
    @property
    def flavors(self) -> RepeatedScalar[str]:
        """The flavors whose labels the node carries and whose resource it has."""
    @property
    def gpus(self) -> RepeatedMessage[NodeGpus]:
        """Resources of flavors, and others whose names end with `/gpu`, ordered by name."""
    ready: bool
    """False: the condition Ready of the node is not True."""
    cordoned: bool
    """True: the node is cordoned in Kubernetes."""
    leaving: bool
    """True: the node is being deleted."""
    reason: str
    """Why the node is not ready, as the cluster says it, such as KubeletNotReady. Empty: it is ready."""
    message: str
    """More about the reason, at most 500 characters."""
    @property
    def since(self) -> Timestamp:
        """Since when the node is not ready. Omitted: it is ready, or that is not known."""
    @property
    def holders(self) -> RepeatedMessage[NodeHolder]:
        """The jobs whose pods are on the node and have not ended, those with the most GPUs first."""
    other_gpus: int
    """GPUs that pods of others hold, which Gangway did not create; also those of jobs whose requests are not
    known.
    """
    @property
    def held(self) -> ScalarMap[str, str]:
        """The sum of the requests of all pods on the node: Kubernetes quantities by resource."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        labels: Mapping[str, str] | None = ...,
        taints: Iterable[str] | None = ...,
        unschedulable: bool | None = ...,
        allocatable: Mapping[str, str] | None = ...,
        free: Mapping[str, str] | None = ...,
        cluster: str | None = ...,
        flavors: Iterable[str] | None = ...,
        gpus: Iterable[NodeGpus] | None = ...,
        ready: bool | None = ...,
        cordoned: bool | None = ...,
        leaving: bool | None = ...,
        reason: str | None = ...,
        message: str | None = ...,
        since: Timestamp | None = ...,
        holders: Iterable[NodeHolder] | None = ...,
        other_gpus: int | None = ...,
        held: Mapping[str, str] | None = ...,
    ) -> None: ...

class NodeGpus(Message):
    """How much a node has of a resource that counts as GPUs."""
    resource: str
    """Such as nvidia.com/gpu."""
    allocatable: int
    held: int
    """The sum of the requests of all pods on the node. More than `allocatable` if the node has lost some."""
    free: int
    def __init__(
        self,
        *,
        resource: str | None = ...,
        allocatable: int | None = ...,
        held: int | None = ...,
        free: int | None = ...,
    ) -> None: ...

class NodeHolder(Message):
    """A job whose pods are on a node."""
    namespace: str
    """Namespace, name, queue, created_by and uid of the job. All are empty for a job that the caller may not see."""
    name: str
    queue: str
    created_by: str
    uid: str
    """Also set, alone, for a job whose record is gone, if the caller may see the jobs of all namespaces."""
    gpus: int
    """The GPUs that its pods on the node request. 0: none, or not known."""
    pods: int
    """How many pods it has on the node."""
    @property
    def members(self) -> RepeatedMessage[HolderPod]:
        """These pods. Empty for a job that the caller may not see."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
        queue: str | None = ...,
        created_by: str | None = ...,
        uid: str | None = ...,
        gpus: int | None = ...,
        pods: int | None = ...,
        members: Iterable[HolderPod] | None = ...,
    ) -> None: ...

class HolderPod(Message):
    """A pod of a job on a node."""
    name: str
    """The name of the pod in its cluster."""
    replica_type: str
    """Such as Worker."""
    index: int
    """The index within the replica type, from 0."""
    @property
    def requests(self) -> ScalarMap[str, str]:
        """The requests of the pod: Kubernetes quantities by resource. Empty: not known."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        replica_type: str | None = ...,
        index: int | None = ...,
        requests: Mapping[str, str] | None = ...,
    ) -> None: ...

class ClusterCredentials(Message):
    """How to reach a cluster, and as which user. The server stores a kubeconfig encrypted, and a reference as
    it is. Never returned.
    """
    text: str
    """The text of a kubeconfig in YAML or JSON, at most 64 KiB. Only known members of the right type are accepted.
    A kubeconfig that runs programs, names files or leads through a proxy is refused, unless the server allows
    local kubeconfigs. The hosts of clusters may be limited.
    """
    path: str
    """A kubeconfig file on the server, read again for every connection. Refused unless the server allows local
    kubeconfigs.
    """
    @property
    def secret(self) -> SecretReference:
        """A Secret that holds the kubeconfig. The server reads it every ten seconds and connects anew when it has
        changed. The kubeconfig is accepted as if it were sent as text. The caller needs clusters.update for the
        cluster of the Secret, or for the installation if the Secret is in the cluster in which the server runs.
        """
    context: str
    """The context of the kubeconfig to use. Empty: its current context."""
    def __init__(
        self,
        *,
        text: str | None = ...,
        path: str | None = ...,
        secret: SecretReference | None = ...,
        context: str | None = ...,
    ) -> None: ...

class SecretReference(Message):
    """A value in a Secret of Kubernetes."""
    cluster: str
    """The registered cluster that has the Secret. Its own kubeconfig must not be in a Secret. Empty: the cluster
    in which the server runs as a pod, by the pod's service account.
    """
    namespace: str
    """Required."""
    name: str
    """Required."""
    key: str
    """The key of the Secret's data. Empty: kubeconfig."""
    def __init__(
        self,
        *,
        cluster: str | None = ...,
        namespace: str | None = ...,
        name: str | None = ...,
        key: str | None = ...,
    ) -> None: ...

class RegisterClusterRequest(Message):
    @property
    def cluster(self) -> Cluster:
        """Name, labels, flavors and gang scheduler; other fields are ignored. Required."""
    @property
    def credentials(self) -> ClusterCredentials:
        """Required."""
    validate_only: bool
    """True: checks the cluster and registers nothing."""
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
        credentials: ClusterCredentials | None = ...,
        validate_only: bool | None = ...,
    ) -> None: ...

class RegisterClusterResponse(Message):
    @property
    def cluster(self) -> Cluster:
        """Omitted: nothing was registered, because of validate_only."""
    @property
    def check(self) -> ClusterCheck: ...
    @property
    def retired(self) -> RepeatedScalar[str]:
        """The names of the simulated clusters that take no gangs from this call on."""
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
        check: ClusterCheck | None = ...,
        retired: Iterable[str] | None = ...,
    ) -> None: ...

class UpdateClusterRequest(Message):
    @property
    def cluster(self) -> Cluster:
        """Name, labels, flavors, gang scheduler and resource_version; other fields are ignored. Required."""
    @property
    def credentials(self) -> ClusterCredentials:
        """Omitted: the stored credentials stay."""
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
        credentials: ClusterCredentials | None = ...,
    ) -> None: ...

class UpdateClusterResponse(Message):
    @property
    def cluster(self) -> Cluster: ...
    @property
    def check(self) -> ClusterCheck:
        """The result of a check with the new credentials. Omitted: the stored ones stay."""
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
        check: ClusterCheck | None = ...,
    ) -> None: ...

class CheckClusterRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class CheckClusterResponse(Message):
    @property
    def check(self) -> ClusterCheck: ...
    def __init__(
        self,
        *,
        check: ClusterCheck | None = ...,
    ) -> None: ...

class ClusterCheck(Message):
    """The result of a check of a cluster."""
    class Severity(int):
        @classmethod
        def Name(cls, number: int) -> str: ...
        @classmethod
        def Value(cls, name: str) -> ClusterCheck.Severity: ...
        @classmethod
        def keys(cls) -> list[str]: ...
        @classmethod
        def values(cls) -> list[int]: ...
    SEVERITY_UNSPECIFIED: ClusterCheck.Severity
    SEVERITY_ERROR: ClusterCheck.Severity
    """Gangs do not run on the cluster until this is repaired."""
    SEVERITY_WARNING: ClusterCheck.Severity
    """Gangs run, but may behave differently than expected."""
    class Finding(Message):
        """A problem of the cluster."""
        severity: ClusterCheck.Severity
        code: str
        """CamelCase: Unreachable, NotKubernetes, MissingPermission, MissingGangScheduler, FlavorWithoutNodes,
        OtherQueueingSystem, ClockSkew, BadCredentials, SameCluster (it is registered under another name),
        OtherCluster (it is not the registered one), …
        """
        message: str
        def __init__(
            self,
            *,
            severity: ClusterCheck.Severity | None = ...,
            code: str | None = ...,
            message: str | None = ...,
        ) -> None: ...
    kubernetes_version: str
    """The version that the API server reports, such as v1.34.1. Empty: the API server did not answer."""
    @property
    def clock_skew(self) -> Duration:
        """How far the cluster's clock is ahead of the server's, to about a second. Omitted: not known."""
    @property
    def findings(self) -> RepeatedMessage[ClusterCheck.Finding]:
        """Errors first. Empty: no problem was found."""
    def __init__(
        self,
        *,
        kubernetes_version: str | None = ...,
        clock_skew: Duration | None = ...,
        findings: Iterable[ClusterCheck.Finding] | None = ...,
    ) -> None: ...

class DeclareClusterLostRequest(Message):
    name: str
    """Required."""
    confirm: str
    """Required, but for a dry run: the name once more. What goes elsewhere does not come back."""
    dry_run: bool
    """True: changes nothing, and says what would become of the gangs there."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        confirm: str | None = ...,
        dry_run: bool | None = ...,
    ) -> None: ...

class DeclareClusterLostResponse(Message):
    @property
    def cluster(self) -> Cluster: ...
    @property
    def gangs(self) -> ClusterGangs:
        """Of a dry run."""
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
        gangs: ClusterGangs | None = ...,
    ) -> None: ...

class AdoptClusterRequest(Message):
    name: str
    """Required."""
    dry_run: bool
    """True: changes nothing, and says which gangs have objects there that would be deleted."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        dry_run: bool | None = ...,
    ) -> None: ...

class AdoptClusterResponse(Message):
    @property
    def cluster(self) -> Cluster: ...
    @property
    def gangs(self) -> ClusterGangs:
        """Of a dry run: `leaving` are those that the records do not know."""
    def __init__(
        self,
        *,
        cluster: Cluster | None = ...,
        gangs: ClusterGangs | None = ...,
    ) -> None: ...

class ClusterGangs(Message):
    """Which of the gangs that are placed in a cluster leave it."""
    leaving: int
    """How many leave it at once: they wait for another place, or are deleted by AdoptCluster."""
    staying: int
    """How many stay there for now. Of a lost cluster: they ran, and wait or move later, as jobs, queues and
    namespaces say.
    """
    @property
    def first_leaving(self) -> RepeatedScalar[str]:
        """The first 100 that leave, as namespace/name in that order, without those that the caller may not see."""
    def __init__(
        self,
        *,
        leaving: int | None = ...,
        staying: int | None = ...,
        first_leaving: Iterable[str] | None = ...,
    ) -> None: ...

class DeleteClusterRequest(Message):
    name: str
    """Required."""
    forget: bool
    """True: the cluster is gone for good. Everything that ran on it counts as gone. Gangs that were placed there
    wait again at once, and run elsewhere, also if their pods still run there.
    """
    confirm: str
    """With `forget`, but for a dry run: the name once more. Forgetting cannot be taken back."""
    dry_run: bool
    """With `forget`. True: changes nothing, and says what would become of the gangs there."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        forget: bool | None = ...,
        confirm: str | None = ...,
        dry_run: bool | None = ...,
    ) -> None: ...

class DeleteClusterResponse(Message):
    @property
    def gangs(self) -> ClusterGangs:
        """Of a dry run."""
    def __init__(
        self,
        *,
        gangs: ClusterGangs | None = ...,
    ) -> None: ...

class ListCredentialKeysRequest(Message):
    def __init__(self) -> None: ...

class ListCredentialKeysResponse(Message):
    @property
    def keys(self) -> RepeatedMessage[CredentialKey]: ...
    def __init__(
        self,
        *,
        keys: Iterable[CredentialKey] | None = ...,
    ) -> None: ...

class CredentialKey(Message):
    """A key that encrypts the credentials of clusters."""
    name: str
    """`default`: the key of GANGWAY_CREDENTIALS_KEY."""
    current: bool
    """True: the server encrypts with this key."""
    known: bool
    """False: the server lacks the key, and cannot use the credentials that it encrypts."""
    @property
    def clusters(self) -> RepeatedScalar[str]:
        """The clusters whose credentials are encrypted with this key, ordered by name."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        current: bool | None = ...,
        known: bool | None = ...,
        clusters: Iterable[str] | None = ...,
    ) -> None: ...

class RotateCredentialKeysRequest(Message):
    to: str
    """The name of the key that is to encrypt: the call is refused if the server that answers has another current
    key, for example because it has not read its file yet. Empty: whatever the current key is.
    """
    def __init__(
        self,
        *,
        to: str | None = ...,
    ) -> None: ...

class RotateCredentialKeysResponse(Message):
    class Problem(Message):
        """Credentials that do not decrypt."""
        cluster: str
        message: str
        def __init__(
            self,
            *,
            cluster: str | None = ...,
            message: str | None = ...,
        ) -> None: ...
    changed: int
    """The number of clusters whose credentials this call has encrypted again."""
    @property
    def keys(self) -> RepeatedMessage[CredentialKey]:
        """All keys as they are in use after the call."""
    @property
    def problems(self) -> RepeatedMessage[RotateCredentialKeysResponse.Problem]:
        """Why credentials are still encrypted with another key, ordered by cluster."""
    def __init__(
        self,
        *,
        changed: int | None = ...,
        keys: Iterable[CredentialKey] | None = ...,
        problems: Iterable[RotateCredentialKeysResponse.Problem] | None = ...,
    ) -> None: ...

class FailureLogs(Message):
    """The last lines of the containers of a job that have failed. They are kept with the job after its pods
    are gone: at most 200 lines and 16 KiB for each container, of the last three attempts; at most 16
    containers for each attempt, 256 KiB for each job and 64 MiB for each namespace. The oldest go first.
    """
    @property
    def logs(self) -> RepeatedMessage[FailureLog]:
        """The newest attempt first. Of one attempt, the container that the failure is blamed on first."""
    left_out: str
    """Why lines are not here: the caller has no permission jobs.logs in the namespace, or the namespace keeps
    none. Empty: none were left out.
    """
    def __init__(
        self,
        *,
        logs: Iterable[FailureLog] | None = ...,
        left_out: str | None = ...,
    ) -> None: ...

class FailureLog(Message):
    """The last lines of one run of a container that failed."""
    replica: str
    """The replica, such as Worker/0."""
    attempt: int
    """The attempt of the replica, from 1."""
    container: str
    pod: str
    """The pod, its cluster, and the number of the job's admission to it."""
    cluster: str
    admission: int
    restarts: int
    """How often the container had been restarted in its pod before this run."""
    exit_code: int
    reason: str
    """Why the container ended, in the words of its cluster, such as Error or OOMKilled. May be empty."""
    @property
    def read_time(self) -> Timestamp:
        """When the lines were read."""
    text: str
    """The lines, separated by line breaks. The first one may be the end of a longer line. Bytes that are not UTF-8
    are replaced. Empty: the container wrote nothing, or `problem` says why its lines could not be read.
    StreamJobLogs returns them as lines instead.
    """
    cut: bool
    """True: the container wrote more before these lines."""
    problem: str
    """Why there are no lines, in CamelCase: Forbidden (the account of Gangway in the cluster may not read logs),
    Timeout, NotFound, or another reason of the cluster. Empty: the lines were read.
    """
    problem_message: str
    """The problem in words."""
    def __init__(
        self,
        *,
        replica: str | None = ...,
        attempt: int | None = ...,
        container: str | None = ...,
        pod: str | None = ...,
        cluster: str | None = ...,
        admission: int | None = ...,
        restarts: int | None = ...,
        exit_code: int | None = ...,
        reason: str | None = ...,
        read_time: Timestamp | None = ...,
        text: str | None = ...,
        cut: bool | None = ...,
        problem: str | None = ...,
        problem_message: str | None = ...,
    ) -> None: ...

class Freeze(Message):
    """A queue or a pool of which nothing more is granted, and nothing is taken."""
    actor: str
    """The caller who has frozen it; `anonymous` without authentication."""
    @property
    def time(self) -> Timestamp: ...
    reason: str
    """What the caller said. Empty: nothing."""
    def __init__(
        self,
        *,
        actor: str | None = ...,
        time: Timestamp | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class NullValue(int):
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> NullValue: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
NULL_VALUE: NullValue

class Struct(Message):
    @property
    def fields(self) -> MessageMap[str, Value]: ...
    def __init__(
        self,
        *,
        fields: Mapping[str, Value] | None = ...,
    ) -> None: ...
    def __getitem__(self, key: str) -> _Any: ...
    def __setitem__(self, key: str, value: _Any) -> None: ...
    def __contains__(self, key: str) -> bool: ...
    def __len__(self) -> int: ...
    def keys(self) -> Iterable[str]: ...
    def update(self, value: Mapping[str, _Any]) -> None: ...

class Value(Message):
    null_value: NullValue
    number_value: float
    string_value: str
    bool_value: bool
    @property
    def struct_value(self) -> Struct: ...
    @property
    def list_value(self) -> ListValue: ...
    def __init__(
        self,
        *,
        null_value: NullValue | None = ...,
        number_value: float | None = ...,
        string_value: str | None = ...,
        bool_value: bool | None = ...,
        struct_value: Struct | None = ...,
        list_value: ListValue | None = ...,
    ) -> None: ...

class ListValue(Message):
    @property
    def values(self) -> RepeatedMessage[Value]: ...
    def __init__(
        self,
        *,
        values: Iterable[Value] | None = ...,
    ) -> None: ...

class PreemptionPolicy(int):
    """Whether a job may preempt others. The values are those of Kubernetes."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> PreemptionPolicy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
PREEMPTION_POLICY_UNSPECIFIED: PreemptionPolicy
"""LOWER_PRIORITY."""
PREEMPTION_POLICY_LOWER_PRIORITY: PreemptionPolicy
"""It may, as the queues say."""
PREEMPTION_POLICY_NEVER: PreemptionPolicy
"""It preempts no job. Others may preempt it."""

class RestartPolicy(int):
    """Decides which failed pods are restarted. The values are those of Kubeflow. Pods that the platform took
    away (eviction, lost node) are restarted under every policy.
    """
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> RestartPolicy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
RESTART_POLICY_UNSPECIFIED: RestartPolicy
"""The kind's default."""
RESTART_POLICY_ALWAYS: RestartPolicy
"""Restarts every pod that ends."""
RESTART_POLICY_ON_FAILURE: RestartPolicy
"""Restarts every pod that fails."""
RESTART_POLICY_NEVER: RestartPolicy
"""Restarts no pod."""
RESTART_POLICY_EXIT_CODE: RestartPolicy
"""Restarts a pod that failed with exit code 128 or above. Exit codes 1 to 127 are permanent failures."""

class RestartScope(int):
    """How much of the gang a failed pod restarts."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> RestartScope: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
RESTART_SCOPE_UNSPECIFIED: RestartScope
"""REPLICA for the kinds of Kubeflow, GANG for Job."""
RESTART_SCOPE_REPLICA: RestartScope
"""Restarts the failed pod alone."""
RESTART_SCOPE_GANG: RestartScope
"""Restarts every pod of the gang."""

class CleanPodPolicy(int):
    """Decides which pods are deleted once the job has ended."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> CleanPodPolicy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
CLEAN_POD_POLICY_UNSPECIFIED: CleanPodPolicy
"""The default of the field."""
CLEAN_POD_POLICY_ALL: CleanPodPolicy
"""Deletes all pods."""
CLEAN_POD_POLICY_RUNNING: CleanPodPolicy
"""Deletes pods that are Running or Pending."""
CLEAN_POD_POLICY_NONE: CleanPodPolicy
"""Deletes no pod. Pods that still run keep the job's tokens until they end."""

class PartialPolicy(int):
    """The rule for a gang of a static kind while it has fewer members than its job has replicas."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> PartialPolicy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
PARTIAL_POLICY_UNSPECIFIED: PartialPolicy
"""KEEP."""
PARTIAL_POLICY_KEEP: PartialPolicy
"""As with Kubeflow: the programs get the number of all replicas, and wait for the others. If not all have run
within schedule_timeout_seconds, the admission is undone, and the planner then admits only the whole gang.
"""
PARTIAL_POLICY_RESTART: PartialPolicy
"""The programs get the number of members that were admitted. Once the others fit, all at once, the gang
restarts as a whole with the new number. The restart counts as no failure.
"""

class JobPhase(int):
    """The phase of a job."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> JobPhase: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
JOB_PHASE_UNSPECIFIED: JobPhase
JOB_PHASE_WAITING: JobPhase
"""The job waits for quota or capacity; status.waiting says why."""
JOB_PHASE_ADMITTED: JobPhase
"""The job has its tokens and its cluster. No pod has been created yet."""
JOB_PHASE_STARTING: JobPhase
"""The job's pods are being created and started."""
JOB_PHASE_RUNNING: JobPhase
"""The kind reports that the job runs: for most kinds, its leading replica runs."""
JOB_PHASE_RESTARTING: JobPhase
"""Failed pods are being restarted."""
JOB_PHASE_SUCCEEDED: JobPhase
"""The job has ended successfully."""
JOB_PHASE_FAILED: JobPhase
"""The job has ended with a failure; status.failure says why."""
JOB_PHASE_CANCELLED: JobPhase
"""The job was ended by CancelJob or DeleteJob."""
JOB_PHASE_SUSPENDED: JobPhase
"""The job waits until spec.run_policy.suspend is false."""

class PluginStage(int):
    """The next call that the server makes to a job's plugin."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> PluginStage: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
PLUGIN_STAGE_UNSPECIFIED: PluginStage
PLUGIN_STAGE_HANDLE: PluginStage
"""`handle`, which advances the job."""
PLUGIN_STAGE_ABORT: PluginStage
"""`abort`, which ends what runs."""
PLUGIN_STAGE_FINALIZE: PluginStage
"""`finalize`, which releases everything that the job still holds at its service."""
PLUGIN_STAGE_DONE: PluginStage
"""No further call."""

class TaskPhase(int):
    """The phase of a task, as in Flyte's plugins."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> TaskPhase: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
TASK_PHASE_UNSPECIFIED: TaskPhase
"""Not known."""
TASK_PHASE_NOT_READY: TaskPhase
"""Not ready to be started."""
TASK_PHASE_WAITING_FOR_RESOURCES: TaskPhase
"""Waits for tokens of a pool."""
TASK_PHASE_WAITING_FOR_CACHE: TaskPhase
"""Waits for another job that computes the same result."""
TASK_PHASE_QUEUED: TaskPhase
"""Accepted, and not started yet."""
TASK_PHASE_INITIALIZING: TaskPhase
"""Being started."""
TASK_PHASE_RUNNING: TaskPhase
TASK_PHASE_SUCCESS: TaskPhase
"""Ended successfully."""
TASK_PHASE_RETRYABLE_FAILURE: TaskPhase
"""Ended with a failure. Another attempt follows if the job's backoff limits allow it."""
TASK_PHASE_PERMANENT_FAILURE: TaskPhase
"""Ended with a failure. No attempt follows."""
TASK_PHASE_ABORTED: TaskPhase
"""Ended from outside, for example by a user of the service."""

class CacheStatus(int):
    """Whether a result was taken from an earlier job."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> CacheStatus: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
CACHE_STATUS_UNSPECIFIED: CacheStatus
"""Not known."""
CACHE_STATUS_DISABLED: CacheStatus
"""Results are not reused."""
CACHE_STATUS_MISS: CacheStatus
"""There was no earlier result."""
CACHE_STATUS_HIT: CacheStatus
"""An earlier result was taken."""
CACHE_STATUS_POPULATED: CacheStatus
"""There was no earlier result; this one was stored for later jobs."""

class FailureKind(int):
    """The cause of a failure; each kind has its own limit in RunPolicy."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> FailureKind: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
FAILURE_KIND_UNSPECIFIED: FailureKind
FAILURE_KIND_USER: FailureKind
"""The job's program or specification."""
FAILURE_KIND_SYSTEM: FailureKind
"""The platform: a lost node, an eviction, a preemption, …"""

class Job(Message):
    """A distributed training job: its specification and its status. A Kubeflow manifest maps to it one to one."""
    @property
    def metadata(self) -> Metadata:
        """Required."""
    @property
    def spec(self) -> JobSpec:
        """Required."""
    @property
    def status(self) -> JobStatus:
        """Output only; ignored in requests."""
    def __init__(
        self,
        *,
        metadata: Metadata | None = ...,
        spec: JobSpec | None = ...,
        status: JobStatus | None = ...,
    ) -> None: ...

class Metadata(Message):
    """The identity of a job. Namespace and name identify a job while it exists; the uid identifies it forever."""
    name: str
    """A DNS label, unique within the namespace across all kinds. Set either name or generate_name. Pods are named
    NAME-ROLE-INDEX; a job is refused if a pod's name would be longer than 63 characters.
    """
    generate_name: str
    """A prefix of the name. The server appends a random suffix. Only in CreateJob, and only if name is empty."""
    namespace: str
    """A DNS label. Empty: `default`. The job's pods run in the Kubernetes namespace of the same name."""
    project: str
    """The project of the namespace at the time when the job was created. Output only."""
    uid: str
    """A UUIDv7. Output only."""
    @property
    def labels(self) -> ScalarMap[str, str]:
        """At most 64 labels, with keys and values as in Kubernetes. Keys of the domain gangway.dev are reserved.
        The label kueue.x-k8s.io/queue-name names the job's queue if run_policy.scheduling_policy.queue is
        empty, and kueue.x-k8s.io/priority-class its priority class if the class exists, and the job names
        neither a class nor a priority.
        """
    @property
    def annotations(self) -> ScalarMap[str, str]:
        """As in Kubernetes. At most 1,000, and 256 KiB in total."""
    resource_version: str
    """The version of the job's record; it grows with every change. Output only, except in UpdateJob."""
    @property
    def create_time(self) -> Timestamp:
        """Output only."""
    @property
    def delete_time(self) -> Timestamp:
        """When deletion was requested. Omitted: it was not. The record disappears once nothing of the job is left
        in its clusters. Output only.
        """
    created_by: str
    """The caller that created the job; `anonymous` without authentication. Output only."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        generate_name: str | None = ...,
        namespace: str | None = ...,
        project: str | None = ...,
        uid: str | None = ...,
        labels: Mapping[str, str] | None = ...,
        annotations: Mapping[str, str] | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        delete_time: Timestamp | None = ...,
        created_by: str | None = ...,
    ) -> None: ...

class JobSpec(Message):
    """The specification of a job. UpdateJob can change priority, priority_class_name, the numbers of replicas
    and run_policy.suspend; all other fields are immutable.
    """
    kind: str
    """PyTorchJob, TFJob, MPIJob, Job, … ListKinds returns all kinds that the server serves. Required."""
    @property
    def replica_specs(self) -> MessageMap[str, ReplicaSpec]:
        """Replica specs by replica type: Master, Worker, Chief, PS, Evaluator, in any case; shown as the kind
        spells them. At least one replica in total. Must be empty for kinds without pods.
        """
    @property
    def run_policy(self) -> RunPolicy:
        """Omitted: every field has its default."""
    @property
    def kind_spec(self) -> Struct:
        """Fields that only this kind has, such as nprocPerNode of a PyTorchJob. ListKinds returns their JSON
        schema. At most 1 MiB of keys and texts, and 20,000 values.
        """
    priority: int
    """Orders the jobs of a queue; jobs with a higher priority come first. Omitted: the value of the priority
    class; 0 without a class. In UpdateJob, another priority than the job's takes its priority class away.
    """
    @property
    def placement(self) -> Placement:
        """The clusters and GPU models that the gang may use. Omitted: any."""
    @property
    def inputs(self) -> Struct:
        """Plain values by name. Commands and arguments of templates refer to them as {{ .Inputs.NAME }}. Text is
        inserted as it is, a list as [a,b], any other value as JSON. Every input that a template names must be
        here. At most 100 inputs and 64 KiB in total.
        """
    priority_class_name: str
    """The PriorityClass of PriorityClassService whose value and preemption policy the job copies. It must exist.
    If priority is set too, it must be the value of the class. Empty: if priority is omitted too, the class of
    the label kueue.x-k8s.io/priority-class, or the default class; else none; in UpdateJob: none, and the
    priority stays. The gang's PodGroup has a class of its own: run_policy.scheduling_policy.priority_class.
    """
    def __init__(
        self,
        *,
        kind: str | None = ...,
        replica_specs: Mapping[str, ReplicaSpec] | None = ...,
        run_policy: RunPolicy | None = ...,
        kind_spec: Struct | None = ...,
        priority: int | None = ...,
        placement: Placement | None = ...,
        inputs: Struct | None = ...,
        priority_class_name: str | None = ...,
    ) -> None: ...

class ReplicaSpec(Message):
    """The pods of one replica type."""
    replicas: int
    """The number of pods, 0 to 10,000. Omitted: 1."""
    @property
    def template(self) -> Struct:
        """A Kubernetes PodTemplateSpec (metadata and spec), at most 1 MiB as JSON. Required. Views of level BASIC
        omit it.
        """
    restart_policy: RestartPolicy
    """Unspecified: the kind's default."""
    @property
    def topology(self) -> TopologyWish:
        """How near each other the pods of this type run, beside what placement.topology says of all pods together.
        Its level must not be coarser than that of the job. Omitted: as the annotations of Kueue in the template
        say, such as kueue.x-k8s.io/podset-required-topology; without them, no wish of its own. Cannot change
        after the job was created.
        """
    def __init__(
        self,
        *,
        replicas: int | None = ...,
        template: Struct | None = ...,
        restart_policy: RestartPolicy | None = ...,
        topology: TopologyWish | None = ...,
    ) -> None: ...

class RunPolicy(Message):
    """The rules by which a job runs, fails and ends."""
    clean_pod_policy: CleanPodPolicy
    """Unspecified: NONE, as in Kubeflow."""
    clean_pod_policy_at_limit: CleanPodPolicy
    """Replaces clean_pod_policy if a limit ends the job: backoff_limit, system_backoff_limit, start_backoff_limit
    or active_deadline_seconds. Unspecified: clean_pod_policy, or RUNNING if that is unspecified too.
    """
    ttl_seconds_after_finished: int
    """Deletes the job this many seconds after it has ended. Omitted: never."""
    active_deadline_seconds: int
    """Fails the job this many seconds after the pods of its admission were started, at most 3,153,600,000 (100
    years). A job that has waited again gets the whole time again. Omitted: never.
    """
    backoff_limit: int
    """Fails the job at this many failures of its program; 0 and 1 fail it at the first one. Failures that the
    system caused count against system_backoff_limit. Omitted: the kind's default, which is no limit for the
    kinds of Kubeflow and 6 for Job.
    """
    @property
    def scheduling_policy(self) -> SchedulingPolicy:
        """Omitted: every field has its default."""
    restart_scope: RestartScope
    """Unspecified: the kind's default."""
    system_backoff_limit: int
    """Fails the job at this many failures that the system caused, such as lost nodes and evictions. Omitted: 20."""
    start_backoff_limit: int
    """Fails the job, with the code StartFailed, after this many admissions in a row whose pods could not start for
    the same permanent reason: the image does not exist or must not be pulled, its name is invalid, or a key of
    a secret or config map is missing. A registry that cannot be reached or limits the rate is no such reason.
    Omitted: 3.
    """
    interruptible_failure_threshold: int
    """After this many failures that the system caused, further attempts of an interruptible job are not
    interruptible. Only for interruptible jobs. Omitted: 1.
    """
    suspend: bool
    """True: the job is not admitted. A job that runs gives up its pods and its tokens. False again: the job waits
    for a new admission. Omitted: false.
    """
    interruptible: bool
    """True: the job's pods run where the platform runs interruptible pods, and may be taken away for other work.
    Omitted: false.
    """
    @property
    def max_runtime(self) -> Duration:
        """Ends the job this long after its admission, as FAILED with the code MaxRuntimeExceeded, and deletes the
        pods that still run whatever clean_pod_policy says: from 1 second to 36,500 days. Unlike
        active_deadline_seconds it counts from the admission, not from the start of the pods, and surely frees
        what the job uses. So the planner may admit the job on what it keeps for a reservation that starts
        later. A job that has waited again gets the whole time again. Omitted: no limit.
        """
    backfill: bool
    """True: the job may be admitted on what is kept for a reservation, and agrees to be taken back at once for it.
    No minimum run time protects the job then. Omitted: false.
    """
    @property
    def move_after(self) -> Duration:
        """If the cluster of the job counts as lost and has not answered for this long, the job runs elsewhere once
        it fits there. Nobody can know whether its pods still run in the lost cluster, so programs must be ready
        for that: see GANGWAY_FENCE. 0: never; the job waits for its cluster. At most 36,500 days. Omitted: as
        the queue or the namespace says, after GANGWAY_CLUSTER_MOVE_SECONDS.
        """
    cache_key: str
    """Reuses results. If a job of the same namespace with the same key, kind, replica_specs and kind_spec has
    succeeded, this job succeeds without running. While such a job runs or waits, this job waits for it. Empty:
    the job always runs.
    """
    def __init__(
        self,
        *,
        clean_pod_policy: CleanPodPolicy | None = ...,
        clean_pod_policy_at_limit: CleanPodPolicy | None = ...,
        ttl_seconds_after_finished: int | None = ...,
        active_deadline_seconds: int | None = ...,
        backoff_limit: int | None = ...,
        scheduling_policy: SchedulingPolicy | None = ...,
        restart_scope: RestartScope | None = ...,
        system_backoff_limit: int | None = ...,
        start_backoff_limit: int | None = ...,
        interruptible_failure_threshold: int | None = ...,
        suspend: bool | None = ...,
        interruptible: bool | None = ...,
        max_runtime: Duration | None = ...,
        backfill: bool | None = ...,
        move_after: Duration | None = ...,
        cache_key: str | None = ...,
    ) -> None: ...

class SchedulingPolicy(Message):
    """How the gang is admitted."""
    min_available: int
    """At least this many pods are admitted together, in one cluster; otherwise none. At most the number of all
    replicas. Omitted: all replicas.
    """
    queue: str
    """The queue of the job; it must exist. Empty: the label kueue.x-k8s.io/queue-name, else the namespace's
    default queue, else `default`.
    """
    schedule_timeout_seconds: int
    """Undoes an admission if fewer than min_available pods run for this many seconds; the job then waits again.
    Omitted: 600. 0: never.
    """
    @property
    def min_resources(self) -> ScalarMap[str, str]:
        """The minResources of the gang's PodGroup, as Kubernetes quantities by resource. Used only in clusters
        with a gang scheduler. Empty: the sum of the requests of the first min_available pods.
        """
    priority_class: str
    """The priority class of the gang's PodGroup, an object of the cluster. Used only in clusters with Volcano.
    Empty: none. The job's own priority class is spec.priority_class_name.
    """
    max_preemptions: int
    """Protects the job after it has been preempted this many times. 0: it is never preempted. The smaller number
    of this and max_preemptions of the queue counts. Omitted: as the queue says.
    """
    partial: PartialPolicy
    """For gangs that are admitted with fewer members than the job has replicas. Refused for elastic kinds, whose
    programs find their peers by rendezvous. Unspecified: KEEP.
    """
    def __init__(
        self,
        *,
        min_available: int | None = ...,
        queue: str | None = ...,
        schedule_timeout_seconds: int | None = ...,
        min_resources: Mapping[str, str] | None = ...,
        priority_class: str | None = ...,
        max_preemptions: int | None = ...,
        partial: PartialPolicy | None = ...,
    ) -> None: ...

class Placement(Message):
    """Restricts where the gang may run. All fields that are set must hold; empty fields restrict nothing."""
    @property
    def clusters(self) -> RepeatedScalar[str]:
        """Names of clusters. The gang runs in one of them."""
    @property
    def cluster_selector(self) -> ScalarMap[str, str]:
        """Labels that the cluster must carry with these values. At most 64."""
    @property
    def gpu_models(self) -> RepeatedScalar[str]:
        """Flavors by their short or full names: h100 or gpu/h100. The gang gets GPUs of one of them."""
    @property
    def topology(self) -> TopologyWish:
        """How near each other all pods of the gang run. Omitted: no wish. Cannot change after the job was created."""
    def __init__(
        self,
        *,
        clusters: Iterable[str] | None = ...,
        cluster_selector: Mapping[str, str] | None = ...,
        gpu_models: Iterable[str] | None = ...,
        topology: TopologyWish | None = ...,
    ) -> None: ...

class TopologyWish(Message):
    """How near each other pods run. A level is named by its name, such as rack, or by the label that its nodes
    have in the cluster. The levels of a cluster are Cluster.topology; at least one cluster that the job may
    run in should have the level. At most one of required and preferred.
    """
    required: str
    """All pods run within one domain of this level, or the gang waits."""
    preferred: str
    """All pods run within one domain of this level if one has room; else within one domain of the next coarser
    level that has one; else in as few domains as possible.
    """
    @property
    def slices(self) -> RepeatedMessage[TopologySlice]:
        """Groups of consecutive pods by index that each run within one domain. Several are nested, coarse to fine:
        each size divides the size before it, and the first divides the number of replicas. Such a gang has a
        fixed size: all its pods are admitted together. In placement.topology, slices are those of the job's
        only replica type.
        """
    def __init__(
        self,
        *,
        required: str | None = ...,
        preferred: str | None = ...,
        slices: Iterable[TopologySlice] | None = ...,
    ) -> None: ...

class TopologySlice(Message):
    """Groups of consecutive pods."""
    level: str
    """The level that has one domain for each group, by its name or label. Required."""
    size: int
    """How many pods a group has, 1 to 10,000. Required."""
    def __init__(
        self,
        *,
        level: str | None = ...,
        size: int | None = ...,
    ) -> None: ...

class JobStatus(Message):
    """The status of a job. Every field is output only."""
    phase: JobPhase
    draining: bool
    """True while pods of an ended or undone admission still hold its tokens."""
    @property
    def conditions(self) -> RepeatedMessage[JobCondition]:
        """The conditions of Kubeflow (Created, Running, Restarting, Suspended, Succeeded, Failed) and
        QuotaReserved, Admitted, PodsReady, Cancelled, Preempted and SetAside. A condition that was never set is
        not listed.
        """
    @property
    def replica_statuses(self) -> MessageMap[str, ReplicaStatus]:
        """Counts of pods by replica type."""
    @property
    def start_time(self) -> Timestamp:
        """When the job started to run. Omitted: it has not."""
    @property
    def completion_time(self) -> Timestamp:
        """When the job ended. Omitted: it has not."""
    @property
    def admission(self) -> Admission:
        """The current admission. Omitted: the job has none."""
    @property
    def waiting(self) -> Waiting:
        """Why the job waits. Omitted: it does not wait."""
    @property
    def failure(self) -> Failure:
        """Why the job failed. Omitted: it has not failed."""
    @property
    def attempts(self) -> Attempts: ...
    min_available: int
    """How many pods must be admitted together."""
    total_replicas: int
    """The number of all replicas."""
    @property
    def info(self) -> TaskInfo:
        """More about the job than its phase. For a job without pods: the last report of its plugin; omitted before
        the first report. For a gang of pods: computed from the job's record for its first 100 pods, and
        returned by GetJob only.
        """
    @property
    def plugin(self) -> PluginStatus:
        """The state of the plugin that runs a job without pods, or whose kind's code has failed. Returned by
        GetJob only. Omitted before the plugin's first call.
        """
    @property
    def pod_problems(self) -> RepeatedMessage[PodProblem]:
        """Why pods of the current admission do not run, as its cluster reports it: at most 8 problems, those of
        the most pods first. Empty: no problem is known. Counts and messages may be up to a minute old.
        """
    @property
    def pods(self) -> RepeatedMessage[JobPod]:
        """The first 100 pods of the current admission as they were last recorded, by replica type and index. Pods
        that start as usual have no node yet. Returned by GetJob only; ListJobPods returns all pods as their
        cluster reports them now.
        """
    preemption_policy: PreemptionPolicy
    """Whether the job may preempt others, as its priority class said. LOWER_PRIORITY without a class."""
    clean_pod_policy: CleanPodPolicy
    """The clean-pod policy in effect: clean_pod_policy_at_limit of the run policy once a limit has ended the job,
    else clean_pod_policy.
    """
    @property
    def concerns(self) -> RepeatedMessage[JobConcern]:
        """Problems and requests that the phase of the job does not show; the most important one comes first.
        Returned by GetJob and ListJobs only, which look at the clusters when they are called. A cluster that
        stops answering changes no job, so that WatchJobs sends nothing then.
        """
    @property
    def acknowledge_time(self) -> Timestamp:
        """When Gangway accepted the job: since then its condition Created is True. It is what Kubeflow's API calls
        startTime, the time at which the controller acknowledged the job; start_time and the active deadline
        count from its pods.
        """
    @property
    def last_reconcile_time(self) -> Timestamp:
        """When a worker last recorded a step of the job. Nothing is written for this time alone, so steps that
        change nothing leave it as it is. Omitted: no step was recorded yet, or an older version recorded the
        last one.
        """
    def __init__(
        self,
        *,
        phase: JobPhase | None = ...,
        draining: bool | None = ...,
        conditions: Iterable[JobCondition] | None = ...,
        replica_statuses: Mapping[str, ReplicaStatus] | None = ...,
        start_time: Timestamp | None = ...,
        completion_time: Timestamp | None = ...,
        admission: Admission | None = ...,
        waiting: Waiting | None = ...,
        failure: Failure | None = ...,
        attempts: Attempts | None = ...,
        min_available: int | None = ...,
        total_replicas: int | None = ...,
        info: TaskInfo | None = ...,
        plugin: PluginStatus | None = ...,
        pod_problems: Iterable[PodProblem] | None = ...,
        pods: Iterable[JobPod] | None = ...,
        preemption_policy: PreemptionPolicy | None = ...,
        clean_pod_policy: CleanPodPolicy | None = ...,
        concerns: Iterable[JobConcern] | None = ...,
        acknowledge_time: Timestamp | None = ...,
        last_reconcile_time: Timestamp | None = ...,
    ) -> None: ...

class JobConcern(Message):
    """Something that is wrong with a job, or under way, that its phase does not show."""
    reason: str
    """CamelCase. ClusterUnreachable: a cluster that has, or may have, pods of the job does not answer.
    ClusterUnusable: it answers, and does not accept this service, which operators have to mend. Deleting and
    Cancelling: the end of the job was requested, and it has not ended yet.
    """
    message: str
    @property
    def since(self) -> Timestamp:
        """Omitted: not known."""
    cluster: str
    """The cluster that the concern is about. Empty: none."""
    def __init__(
        self,
        *,
        reason: str | None = ...,
        message: str | None = ...,
        since: Timestamp | None = ...,
        cluster: str | None = ...,
    ) -> None: ...

class PodProblem(Message):
    """A reason why pods of one replica type do not run."""
    replica_type: str
    """Such as Worker."""
    pods: int
    """How many pods of this type have the problem."""
    reason: str
    """CamelCase, as the cluster says it: Unschedulable, ImagePullBackOff, CreateContainerConfigError,
    CrashLoopBackOff, … In Gangway's own words: FailedCreatePod (the API server refuses to create pods),
    NotScheduled (no scheduler has looked at them), ContainerCreating (for more than a minute), Terminating
    (their deletion is overdue), NodeSilent (their node does not report to the cluster: nobody knows whether
    they run), NameTaken (a foreign pod has the name) and PodGroupPending (the gang scheduler has not admitted
    the gang).
    """
    message: str
    """The words of the cluster about the first of these pods, at most 500 characters."""
    @property
    def since(self) -> Timestamp:
        """Since when the problem is known."""
    def __init__(
        self,
        *,
        replica_type: str | None = ...,
        pods: int | None = ...,
        reason: str | None = ...,
        message: str | None = ...,
        since: Timestamp | None = ...,
    ) -> None: ...

class JobPod(Message):
    """A pod of a job."""
    name: str
    """The name of the pod in its cluster."""
    replica_type: str
    """Such as Worker."""
    index: int
    """The index within the replica type, from 0."""
    attempt: int
    """How often this replica was started, from 1."""
    phase: str
    """Pending, Running, Succeeded, Failed or Unknown, as in Kubernetes. Terminating: it is being deleted.
    NotCreated: it does not exist yet. Deleted: it was deleted before it had ended.
    """
    node: str
    """The node. Empty: the pod has none, or it is not known."""
    ready: bool
    """True: the pod is ready, as in Kubernetes."""
    restarts: int
    """How often containers of this pod were restarted within the pod."""
    reason: str
    """Why the pod failed or does not run, in CamelCase. Empty: it runs, starts as usual or has succeeded."""
    message: str
    """More about the reason, at most 500 characters."""
    @property
    def create_time(self) -> Timestamp:
        """When the pod was created. Omitted: not known."""
    planned_node: str
    """The node that the plan has chosen. Empty: none is planned, as for a job that an older version has admitted."""
    off_plan: str
    """Why the pod is on another node than planned. Empty: it is on that node, on none, or none is planned."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        replica_type: str | None = ...,
        index: int | None = ...,
        attempt: int | None = ...,
        phase: str | None = ...,
        node: str | None = ...,
        ready: bool | None = ...,
        restarts: int | None = ...,
        reason: str | None = ...,
        message: str | None = ...,
        create_time: Timestamp | None = ...,
        planned_node: str | None = ...,
        off_plan: str | None = ...,
    ) -> None: ...

class PluginStatus(Message):
    """The recorded state of a plugin that runs a job without pods."""
    stage: PluginStage
    """The next call."""
    attempt: int
    """The number of the attempt, from 1. All calls of one attempt use the same task name."""
    state_version: int
    """The version of the format of `state`, as the plugin numbers it."""
    @property
    def state(self) -> Struct:
        """The state that the plugin keeps for its next call. Views of level BASIC omit it."""
    failed_calls: int
    """How many calls of this stage have failed in a row."""
    last_failure: str
    """The error of the last failed call of this stage. Empty: none has failed."""
    @property
    def not_before(self) -> Timestamp:
        """The next call is not made before this time. Omitted: there is no further call."""
    def __init__(
        self,
        *,
        stage: PluginStage | None = ...,
        attempt: int | None = ...,
        state_version: int | None = ...,
        state: Struct | None = ...,
        failed_calls: int | None = ...,
        last_failure: str | None = ...,
        not_before: Timestamp | None = ...,
    ) -> None: ...

class TaskInfo(Message):
    """More about a job than its phase, as its kind or its plugin reports it. A report with the same phase and
    phase_version as the last one is not news.
    """
    @property
    def logs(self) -> RepeatedMessage[LogLink]:
        """Links to logs: of pods as the platform's configuration builds them (first 100 pods), and links that the
        plugin reports.
        """
    phase: TaskPhase
    phase_version: int
    """For a gang of pods: the version of the job's record. Otherwise as the plugin counts it."""
    reason: str
    """Why the job is in this phase."""
    @property
    def external_resources(self) -> RepeatedMessage[ExternalResource]:
        """The pods of the job, or the resources that its plugin has started."""
    @property
    def occurred_at(self) -> Timestamp:
        """When the job entered this phase."""
    @property
    def reported_at(self) -> Timestamp:
        """When this was recorded."""
    @property
    def additional_reasons(self) -> RepeatedMessage[AdditionalReason]:
        """Earlier reasons that were not reported one by one."""
    @property
    def custom_info(self) -> Struct:
        """More information, in a format of the kind's own."""
    @property
    def outputs(self) -> Struct:
        """The outputs of the job, by name, as its plugin has recorded them. A job that reuses a result has its
        outputs too. Omitted: the plugin has recorded none, or the job has pods.
        """
    def __init__(
        self,
        *,
        logs: Iterable[LogLink] | None = ...,
        phase: TaskPhase | None = ...,
        phase_version: int | None = ...,
        reason: str | None = ...,
        external_resources: Iterable[ExternalResource] | None = ...,
        occurred_at: Timestamp | None = ...,
        reported_at: Timestamp | None = ...,
        additional_reasons: Iterable[AdditionalReason] | None = ...,
        custom_info: Struct | None = ...,
        outputs: Struct | None = ...,
    ) -> None: ...

class LogLink(Message):
    """A link to a log."""
    name: str
    """The name of the log viewer or log store, as the platform or the plugin names it."""
    uri: str
    replica: str
    """The replica, such as Worker/0. Empty: the log is not that of a pod."""
    container: str
    """The container. Empty: the log is not that of a pod."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        uri: str | None = ...,
        replica: str | None = ...,
        container: str | None = ...,
    ) -> None: ...

class ExternalResource(Message):
    """A pod of the job, or anything that its plugin has started elsewhere."""
    external_id: str
    """The name of the pod, or the id that the plugin reports."""
    index: int
    """The position of the resource. It stays the same across retries, also if the id changes."""
    retry_attempt: int
    """How often the resource was retried; 0 for the first attempt."""
    phase: TaskPhase
    cache_status: CacheStatus
    @property
    def logs(self) -> RepeatedMessage[LogLink]: ...
    replica: str
    """The replica, such as Worker/0. Empty: the resource is not a pod."""
    def __init__(
        self,
        *,
        external_id: str | None = ...,
        index: int | None = ...,
        retry_attempt: int | None = ...,
        phase: TaskPhase | None = ...,
        cache_status: CacheStatus | None = ...,
        logs: Iterable[LogLink] | None = ...,
        replica: str | None = ...,
    ) -> None: ...

class AdditionalReason(Message):
    """A reason that held between two reports."""
    reason: str
    @property
    def occurred_at(self) -> Timestamp:
        """Omitted: not known."""
    def __init__(
        self,
        *,
        reason: str | None = ...,
        occurred_at: Timestamp | None = ...,
    ) -> None: ...

class JobCondition(Message):
    """A condition of a job, as in Kubernetes. At most one of Succeeded, Failed and Cancelled is True."""
    type: str
    """Created, Running, Restarting, Suspended, Succeeded, Failed, Cancelled, QuotaReserved, Admitted, PodsReady,
    Preempted or SetAside.
    """
    status: str
    """True or False."""
    reason: str
    """CamelCase, such as PyTorchJobRunning. Of Preempted, as in Kueue: InClusterQueue, InCohortReclamation,
    InCohortReclaimWhileBorrowing or InCohortFairSharing; or Reservation, of a job with backfill that was taken
    back. Of SetAside: BlocksWorkers or FillsWorkers, for what the steps of the job did to workers.
    """
    message: str
    @property
    def last_update_time(self) -> Timestamp:
        """When any field last changed."""
    @property
    def last_transition_time(self) -> Timestamp:
        """When the status last changed."""
    def __init__(
        self,
        *,
        type: str | None = ...,
        status: str | None = ...,
        reason: str | None = ...,
        message: str | None = ...,
        last_update_time: Timestamp | None = ...,
        last_transition_time: Timestamp | None = ...,
    ) -> None: ...

class ReplicaStatus(Message):
    """Counts of the pods of one replica type, as in Kubeflow."""
    active: int
    """Pods that run. Once the job has succeeded, the pods that still ran count as succeeded; once a failed or
    cancelled job has released its tokens, none is active.
    """
    succeeded: int
    failed: int
    selector: str
    """A label selector for the pods of this replica type in their cluster: job, operator and replica type."""
    @property
    def label_selector(self) -> LabelSelector:
        """The same as a structure. Deprecated in Kubeflow: use selector."""
    active_at_end: int
    """How many of the succeeded pods still ran when the job succeeded: the clean-pod policy may have deleted them."""
    succeeded_parts: str
    """Of a Job of batch/v1: the parts of its work that have succeeded, by their numbers, such as 0,2-5; with
    completion mode Indexed these are its indexes. At most 64 KiB; longer lists end with an ellipsis.
    """
    failed_parts: str
    """The parts that have failed for good."""
    def __init__(
        self,
        *,
        active: int | None = ...,
        succeeded: int | None = ...,
        failed: int | None = ...,
        selector: str | None = ...,
        label_selector: LabelSelector | None = ...,
        active_at_end: int | None = ...,
        succeeded_parts: str | None = ...,
        failed_parts: str | None = ...,
    ) -> None: ...

class LabelSelector(Message):
    """A selection of objects by their labels, as in Kubernetes: all of these labels with these values."""
    @property
    def match_labels(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        match_labels: Mapping[str, str] | None = ...,
    ) -> None: ...

class Admission(Message):
    """One placement of a gang in one cluster."""
    number: int
    """1, 2, … within the job. Pods carry it as the label gangway.dev/admission."""
    cluster: str
    """The cluster. Empty: the job has no pods."""
    @property
    def admit_time(self) -> Timestamp: ...
    @property
    def members(self) -> ScalarMap[str, int]:
        """How many replicas of each type were admitted: those with the lowest indexes."""
    @property
    def flavors(self) -> ScalarMap[str, str]:
        """The flavor of each extended resource, such as nvidia.com/gpu: gpu/h100. If replica types have different
        flavors of a resource, that of the first type that requests it.
        """
    @property
    def tokens(self) -> RepeatedMessage[Token]:
        """The tokens that the admission holds. Empty in changes that WatchJobs and UpdateJob return."""
    simulated: bool
    """True: the cluster was a simulated one, so no program of the job ran there."""
    partial: PartialPolicy
    """The rule that holds until all replicas have run. Unspecified: the gang is whole or elastic."""
    @property
    def returned(self) -> ScalarMap[str, int]:
        """How many members of each type have ended and gave their tokens back while the others run. Types without
        such a member are left out.
        """
    @property
    def gone_time(self) -> Timestamp:
        """When its cluster was seen without any of its objects. Omitted: some may exist."""
    @property
    def role_flavors(self) -> MessageMap[str, RoleFlavors]:
        """By replica type, if types have different flavors of a resource: the flavors of its resources. A type
        that is not named has those of `flavors`.
        """
    def __init__(
        self,
        *,
        number: int | None = ...,
        cluster: str | None = ...,
        admit_time: Timestamp | None = ...,
        members: Mapping[str, int] | None = ...,
        flavors: Mapping[str, str] | None = ...,
        tokens: Iterable[Token] | None = ...,
        simulated: bool | None = ...,
        partial: PartialPolicy | None = ...,
        returned: Mapping[str, int] | None = ...,
        gone_time: Timestamp | None = ...,
        role_flavors: Mapping[str, RoleFlavors] | None = ...,
    ) -> None: ...

class RoleFlavors(Message):
    """The flavors of one replica type."""
    @property
    def flavors(self) -> ScalarMap[str, str]:
        """By extended resource, such as nvidia.com/gpu: gpu/a100."""
    def __init__(
        self,
        *,
        flavors: Mapping[str, str] | None = ...,
    ) -> None: ...

class Token(Message):
    """An amount of a pool that an admission holds."""
    pool: str
    amount: int
    fence: int
    """The number of the grant. It is never used again."""
    def __init__(
        self,
        *,
        pool: str | None = ...,
        amount: int | None = ...,
        fence: int | None = ...,
    ) -> None: ...

class Waiting(Message):
    """Why a job waits."""
    reason: str
    """CamelCase: QuotaExhausted, NoCapacity, Backoff, Draining, … ExplainJob returns the details."""
    message: str
    @property
    def since(self) -> Timestamp:
        """Since when the job waits for this reason."""
    position: int
    """The place of the job in its queue, from 1. Computed when read; 0 where it is not computed. A list of several
    jobs computes the first 1,000 places of each queue.
    """
    def __init__(
        self,
        *,
        reason: str | None = ...,
        message: str | None = ...,
        since: Timestamp | None = ...,
        position: int | None = ...,
    ) -> None: ...

class Failure(Message):
    """Why a job failed."""
    code: str
    """CamelCase: ExitCode, OOMKilled, DeadlineExceeded, BackoffLimitExceeded, …"""
    kind: FailureKind
    message: str
    container: str
    """The container that failed. Empty: the failure is not that of a container."""
    exit_code: int
    """The exit code of the container. Omitted: none is known."""
    def __init__(
        self,
        *,
        code: str | None = ...,
        kind: FailureKind | None = ...,
        message: str | None = ...,
        container: str | None = ...,
        exit_code: int | None = ...,
    ) -> None: ...

class Attempts(Message):
    """Counts of failures and restarts."""
    user: int
    """Failures that count against backoff_limit."""
    system: int
    """Failures that count against system_backoff_limit."""
    @property
    def replicas(self) -> ScalarMap[str, int]:
        """The number of the current attempt by replica, such as Worker/0. Replicas at attempt 1 are left out."""
    preemptions: int
    """How often an admission was undone for another gang. It counts against no limit; the wait before the next
    admission doubles with each.
    """
    @property
    def last_failure(self) -> Failure:
        """The last failure that was counted. Omitted: none was, or it was recorded by an older version."""
    @property
    def last_failure_time(self) -> Timestamp:
        """When that was counted."""
    def __init__(
        self,
        *,
        user: int | None = ...,
        system: int | None = ...,
        replicas: Mapping[str, int] | None = ...,
        preemptions: int | None = ...,
        last_failure: Failure | None = ...,
        last_failure_time: Timestamp | None = ...,
    ) -> None: ...

class FieldMask(Message):
    @property
    def paths(self) -> RepeatedScalar[str]: ...
    def __init__(
        self,
        *,
        paths: Iterable[str] | None = ...,
    ) -> None: ...
    def ToJsonString(self) -> str: ...
    def FromJsonString(self, value: str) -> None: ...

class Any(Message):
    type_url: str
    value: bytes
    def __init__(
        self,
        *,
        type_url: str | None = ...,
        value: bytes | None = ...,
    ) -> None: ...
    def Pack(self, msg: Message) -> None: ...
    def Unpack(self, msg: Message) -> bool: ...
    def TypeName(self) -> str: ...

class Status(Message):
    code: int
    message: str
    @property
    def details(self) -> RepeatedMessage[Any]: ...
    def __init__(
        self,
        *,
        code: int | None = ...,
        message: str | None = ...,
        details: Iterable[Any] | None = ...,
    ) -> None: ...

class JobView(int):
    """How much of a job is returned."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> JobView: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
JOB_VIEW_UNSPECIFIED: JobView
"""FULL in GetJob; BASIC in lists, watches and batches."""
JOB_VIEW_BASIC: JobView
"""Everything except pod templates and plugin state."""
JOB_VIEW_FULL: JobView
"""Everything."""

class JobProperty(int):
    """A property of jobs by which they are counted."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> JobProperty: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
JOB_PROPERTY_UNSPECIFIED: JobProperty
JOB_PROPERTY_PHASE: JobProperty
"""The phase, such as RUNNING."""
JOB_PROPERTY_QUEUE: JobProperty
JOB_PROPERTY_NAMESPACE: JobProperty
JOB_PROPERTY_OWNER: JobProperty
"""The caller that created the job."""
JOB_PROPERTY_KIND: JobProperty
JOB_PROPERTY_CLUSTER: JobProperty
"""The cluster of the job's current admission. Empty: it has none."""
JOB_PROPERTY_FLAVOR: JobProperty
"""A flavor of the job's live admission. Empty: it has none. A job with several flavors counts once for each."""
JOB_PROPERTY_REASON: JobProperty
"""Why the job waits: NotEvaluated if nothing is recorded. Empty: it does not wait."""

class QuotaLevel(int):
    """The level at which a quota is counted."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> QuotaLevel: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
QUOTA_LEVEL_UNSPECIFIED: QuotaLevel
"""QUEUE; only in records of versions that knew no other level."""
QUOTA_LEVEL_POOL: QuotaLevel
"""All use of the pool."""
QUOTA_LEVEL_PROJECT: QuotaLevel
"""The use of the pool by one project."""
QUOTA_LEVEL_NAMESPACE: QuotaLevel
"""The use of the pool by one namespace."""
QUOTA_LEVEL_QUEUE: QuotaLevel
"""The use of the pool by the job's queue, or by a queue above it."""

class Verdict(int):
    """Whether a job could run."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> Verdict: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
VERDICT_UNSPECIFIED: Verdict
VERDICT_FITS_NOW: Verdict
"""Now: the planner would admit the job."""
VERDICT_WAITS: Verdict
"""Not now, but once other jobs have ended, or a cluster can be used again."""
VERDICT_NEVER: Verdict
"""Not even if nothing else ran, unless the job, its queue or a cluster is changed."""

class CreateJobRequest(Message):
    @property
    def job(self) -> Job:
        """Required. With a manifest, only metadata.namespace counts, and the rest may be omitted."""
    request_id: str
    """An idempotency key, unique within the namespace. For at least 7 days, a call with the same id and the same
    job returns the job that the first call created. At most 128 characters. Empty: only the job's name makes
    the call idempotent.
    """
    validate_only: bool
    """True: checks the request and answers as the real call would, and changes nothing."""
    strict: bool
    """True: warnings about the job, such as unknown fields in a template, become errors. The warning that clusters
    are simulated does not: it is not about the job.
    """
    @property
    def manifest(self) -> Struct:
        """A manifest as its users write it, in place of the job's spec: of kubeflow.org/v1, batch/v1 or
        gangway.dev/v1. Its name, labels and annotations are those of the job. Its metadata.namespace must be
        job.metadata.namespace, or omitted. Errors name its fields, such as manifest.spec.template. At most 4
        MiB of keys and texts, and 200,000 values.
        """
    def __init__(
        self,
        *,
        job: Job | None = ...,
        request_id: str | None = ...,
        validate_only: bool | None = ...,
        strict: bool | None = ...,
        manifest: Struct | None = ...,
    ) -> None: ...

class CreateJobResponse(Message):
    class Outcome(int):
        @classmethod
        def Name(cls, number: int) -> str: ...
        @classmethod
        def Value(cls, name: str) -> CreateJobResponse.Outcome: ...
        @classmethod
        def keys(cls) -> list[str]: ...
        @classmethod
        def values(cls) -> list[int]: ...
    OUTCOME_UNSPECIFIED: CreateJobResponse.Outcome
    OUTCOME_CREATED: CreateJobResponse.Outcome
    """The call created the job."""
    OUTCOME_REPLAYED: CreateJobResponse.Outcome
    """An earlier call with the same request id created the job."""
    OUTCOME_UNCHANGED: CreateJobResponse.Outcome
    """A job with the same name and specification already existed."""
    OUTCOME_VALID: CreateJobResponse.Outcome
    """With validate_only: the job would be created."""
    @property
    def job(self) -> Job: ...
    outcome: CreateJobResponse.Outcome
    @property
    def warnings(self) -> RepeatedMessage[Warning]:
        """Probable mistakes in the job; and for `spec.placement`, the simulated clusters that may take it."""
    def __init__(
        self,
        *,
        job: Job | None = ...,
        outcome: CreateJobResponse.Outcome | None = ...,
        warnings: Iterable[Warning] | None = ...,
    ) -> None: ...

class BatchCreateJobsRequest(Message):
    @property
    def requests(self) -> RepeatedMessage[CreateJobRequest]:
        """Carried out like CreateJob, one after the other in this order."""
    view: JobView
    """How much of each job is returned. Unspecified: BASIC."""
    def __init__(
        self,
        *,
        requests: Iterable[CreateJobRequest] | None = ...,
        view: JobView | None = ...,
    ) -> None: ...

class BatchCreateJobsResponse(Message):
    @property
    def results(self) -> RepeatedMessage[BatchCreateJobsResult]:
        """One result per request, in the order of the requests."""
    def __init__(
        self,
        *,
        results: Iterable[BatchCreateJobsResult] | None = ...,
    ) -> None: ...

class BatchCreateJobsResult(Message):
    """The result of one request of a batch."""
    @property
    def response(self) -> CreateJobResponse: ...
    @property
    def error(self) -> Status:
        """The error that CreateJob would have returned, with its details. Field paths start at the single request."""
    def __init__(
        self,
        *,
        response: CreateJobResponse | None = ...,
        error: Status | None = ...,
    ) -> None: ...

class Warning(Message):
    """A field that was accepted although it is probably a mistake."""
    field: str
    """The path in the request, such as job.spec.replica_specs[Worker].template.spec.contianers."""
    message: str
    def __init__(
        self,
        *,
        field: str | None = ...,
        message: str | None = ...,
    ) -> None: ...

class GetJobRequest(Message):
    namespace: str
    """Empty: `default`."""
    name: str
    """Set either name or uid."""
    uid: str
    """The job's uid, in place of namespace and name."""
    view: JobView
    """Unspecified: FULL."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
        uid: str | None = ...,
        view: JobView | None = ...,
    ) -> None: ...

class GetJobResponse(Message):
    @property
    def job(self) -> Job: ...
    @property
    def failure_logs(self) -> FailureLogs:
        """The last lines of its containers that failed. Only in view FULL. Omitted: none has failed, or none is
        kept.
        """
    def __init__(
        self,
        *,
        job: Job | None = ...,
        failure_logs: FailureLogs | None = ...,
    ) -> None: ...

class JobFilter(Message):
    """Selects jobs. All fields that are set must match; empty fields match every job."""
    namespace: str
    """Empty: all namespaces."""
    @property
    def names(self) -> RepeatedScalar[str]:
        """At most 1,000 names; a job must have one of them."""
    @property
    def kinds(self) -> RepeatedScalar[str]:
        """A job must have one of these kinds."""
    @property
    def phases(self) -> RepeatedScalar[JobPhase]:
        """A job must be in one of these phases."""
    queue: str
    """The job's queue."""
    cluster: str
    """The cluster of the job's current admission."""
    @property
    def labels(self) -> ScalarMap[str, str]:
        """Labels that the job must carry with these values. At most 64."""
    @property
    def namespaces(self) -> RepeatedScalar[str]:
        """A job must be in one of these namespaces."""
    @property
    def queues(self) -> RepeatedScalar[str]:
        """A job must be in one of these queues."""
    queue_subtree: str
    """The job's queue is this one or below it. Of the queues below, only those that the caller may see count."""
    @property
    def created_by(self) -> RepeatedScalar[str]:
        """One of these callers must have created the job: metadata.created_by."""
    @property
    def reasons(self) -> RepeatedScalar[str]:
        """The job must wait for one of these reasons: status.waiting.reason, or NotEvaluated while it has none.
        Only jobs in phase WAITING pass.
        """
    name_prefix: str
    """The job's name begins with this text."""
    flavor: str
    """A flavor of the job's live admission. Only jobs in phase ADMITTED, STARTING, RUNNING or RESTARTING pass: no
    index has the flavors of jobs that have ended.
    """
    node: str
    """A node that has a pod of the job, as its cluster was last recorded. With `cluster`, only of that cluster."""
    project: str
    """The project of the job's namespace at the time when the job was created."""
    @property
    def created_since(self) -> Timestamp:
        """The job was created at this time or later."""
    @property
    def created_before(self) -> Timestamp:
        """The job was created before this time."""
    @property
    def ended_since(self) -> Timestamp:
        """The job has ended, at this time or later."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        names: Iterable[str] | None = ...,
        kinds: Iterable[str] | None = ...,
        phases: Iterable[JobPhase] | None = ...,
        queue: str | None = ...,
        cluster: str | None = ...,
        labels: Mapping[str, str] | None = ...,
        namespaces: Iterable[str] | None = ...,
        queues: Iterable[str] | None = ...,
        queue_subtree: str | None = ...,
        created_by: Iterable[str] | None = ...,
        reasons: Iterable[str] | None = ...,
        name_prefix: str | None = ...,
        flavor: str | None = ...,
        node: str | None = ...,
        project: str | None = ...,
        created_since: Timestamp | None = ...,
        created_before: Timestamp | None = ...,
        ended_since: Timestamp | None = ...,
    ) -> None: ...

class ListJobsRequest(Message):
    @property
    def filter(self) -> JobFilter:
        """Omitted: all jobs."""
    order_by: str
    """One of: - create_time, or create_time desc - name - priority desc - complete_time desc: those that ended
    last come first. It needs a filter with ended_since, or with phases, and
      then allows only SUCCEEDED, FAILED and CANCELLED.
    - wait_since: by the time since which jobs wait: when they were created, or when their last admission ended.
    No
      index has that order, so it needs a filter with the phase WAITING alone.
    - held desc: by the tokens that the live admission holds. No index has that order, so it needs a filter with
      phases, and allows only ADMITTED, STARTING, RUNNING and RESTARTING.

    Empty: create_time.
    """
    page_size: int
    """At most 1,000. 0: 100. A page may hold fewer jobs, so that the response stays below 4 MiB."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    view: JobView
    """Unspecified: BASIC."""
    def __init__(
        self,
        *,
        filter: JobFilter | None = ...,
        order_by: str | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
        view: JobView | None = ...,
    ) -> None: ...

class ListJobsResponse(Message):
    @property
    def jobs(self) -> RepeatedMessage[Job]: ...
    next_page_token: str
    """Empty: this is the last page."""
    total_estimate: int
    """How many jobs pass the filter, counted up to 10,000."""
    def __init__(
        self,
        *,
        jobs: Iterable[Job] | None = ...,
        next_page_token: str | None = ...,
        total_estimate: int | None = ...,
    ) -> None: ...

class CountJobsRequest(Message):
    @property
    def filter(self) -> JobFilter:
        """Omitted: all jobs that have not ended."""
    @property
    def group_by(self) -> RepeatedScalar[JobProperty]:
        """At most two properties; jobs that have the same ones form a group. Empty: all jobs are one group."""
    def __init__(
        self,
        *,
        filter: JobFilter | None = ...,
        group_by: Iterable[JobProperty] | None = ...,
    ) -> None: ...

class CountJobsResponse(Message):
    @property
    def groups(self) -> RepeatedMessage[JobCount]:
        """The groups with the most jobs come first; of those with equally many, by their values. At most 200."""
    @property
    def rest(self) -> JobCount:
        """The groups beyond these as one. Omitted: there are none."""
    rest_groups: int
    """How many groups `rest` sums up."""
    ended_capped: bool
    """True: more jobs that have ended pass the filter. Only the 10,000 that ended last count."""
    @property
    def ended_since(self) -> Timestamp:
        """Jobs that ended before this time do not count. Omitted: none that has ended counts."""
    def __init__(
        self,
        *,
        groups: Iterable[JobCount] | None = ...,
        rest: JobCount | None = ...,
        rest_groups: int | None = ...,
        ended_capped: bool | None = ...,
        ended_since: Timestamp | None = ...,
    ) -> None: ...

class JobCount(Message):
    """How many jobs there are with some properties."""
    @property
    def values(self) -> RepeatedScalar[str]:
        """What the jobs have of each property, in the order of group_by. Empty for `rest`."""
    jobs: int
    pods: int
    """The pods of these jobs if all their replicas run."""
    @property
    def tokens(self) -> ScalarMap[str, int]:
        """The tokens that their live admissions hold, by pool, such as gpu/h100; for a group by flavor, those of
        the flavor alone. Has the 50 pools with the most; the tokens of the others are summed under the empty
        name.
        """
    @property
    def oldest_create_time(self) -> Timestamp:
        """When the oldest of them was created. Omitted: there is no job."""
    def __init__(
        self,
        *,
        values: Iterable[str] | None = ...,
        jobs: int | None = ...,
        pods: int | None = ...,
        tokens: Mapping[str, int] | None = ...,
        oldest_create_time: Timestamp | None = ...,
    ) -> None: ...

class WatchJobsRequest(Message):
    @property
    def filter(self) -> JobFilter:
        """Omitted: all jobs. A filter of a watch has no queue_subtree, reasons, flavor or node."""
    cursor: str
    """Resumes after this cursor. Empty: starts with all jobs that exist."""
    view: JobView
    """Unspecified: BASIC."""
    def __init__(
        self,
        *,
        filter: JobFilter | None = ...,
        cursor: str | None = ...,
        view: JobView | None = ...,
    ) -> None: ...

class WatchJobsResponse(Message):
    class Type(int):
        @classmethod
        def Name(cls, number: int) -> str: ...
        @classmethod
        def Value(cls, name: str) -> WatchJobsResponse.Type: ...
        @classmethod
        def keys(cls) -> list[str]: ...
        @classmethod
        def values(cls) -> list[int]: ...
    TYPE_UNSPECIFIED: WatchJobsResponse.Type
    TYPE_ADDED: WatchJobsResponse.Type
    """The job exists at the start of the stream, was created, or passes the filter from now on."""
    TYPE_MODIFIED: WatchJobsResponse.Type
    """The job changed."""
    TYPE_DELETED: WatchJobsResponse.Type
    """The job's record was removed, or the job no longer passes the filter."""
    TYPE_BOOKMARK: WatchJobsResponse.Type
    """No change; only the cursor is newer. The first BOOKMARK follows the last job that existed at the start. If
    these are many, changes of those that were sent may come before it.
    """
    TYPE_GAP: WatchJobsResponse.Type
    """The cursor is older than the event log. Forget all jobs: the stream starts again with ADDED for each."""
    type: WatchJobsResponse.Type
    @property
    def job(self) -> Job:
        """The job after the change; before it, for DELETED. Omitted for BOOKMARK and GAP."""
    cursor: str
    """The cursor to resume after. Empty while the jobs that existed at the start are sent."""
    def __init__(
        self,
        *,
        type: WatchJobsResponse.Type | None = ...,
        job: Job | None = ...,
        cursor: str | None = ...,
    ) -> None: ...

class UpdateJobRequest(Message):
    @property
    def job(self) -> Job:
        """metadata.namespace and metadata.name identify the job. metadata.resource_version is the version that the
        change is based on; empty accepts any version. All other fields are read only if the update mask names
        them.
        """
    @property
    def update_mask(self) -> FieldMask:
        """The fields to change: spec.priority, spec.run_policy.suspend, metadata.labels (replaces all labels),
        spec.replica_specs.TYPE.replicas for one replica type, or spec.replica_specs (also
        spec.replica_specs.*.replicas) for all replica types that the job names. A field that is named and
        omitted gets its default; a number of replicas must be set. spec.replica_specs.TYPE.template changes a
        pod template while the job is suspended and no pod of it is left: each of metadata.labels,
        metadata.annotations, spec.nodeSelector, spec.affinity, spec.tolerations and spec.schedulingGates that
        the template has takes the place of the job's own; null removes it.
        """
    def __init__(
        self,
        *,
        job: Job | None = ...,
        update_mask: FieldMask | None = ...,
    ) -> None: ...

class UpdateJobResponse(Message):
    @property
    def job(self) -> Job: ...
    def __init__(
        self,
        *,
        job: Job | None = ...,
    ) -> None: ...

class CancelJobRequest(Message):
    namespace: str
    """Empty: `default`."""
    name: str
    """Required."""
    reason: str
    """Shown in the job's conditions and events. At most 1,024 characters."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class CancelJobResponse(Message):
    @property
    def job(self) -> Job: ...
    def __init__(
        self,
        *,
        job: Job | None = ...,
    ) -> None: ...

class DeleteJobRequest(Message):
    namespace: str
    """Empty: `default`."""
    name: str
    """Required."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
    ) -> None: ...

class DeleteJobResponse(Message):
    @property
    def job(self) -> Job:
        """The job with its delete_time."""
    def __init__(
        self,
        *,
        job: Job | None = ...,
    ) -> None: ...

class ExplainJobRequest(Message):
    namespace: str
    """Empty: `default`."""
    name: str
    """Required."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
    ) -> None: ...

class ExplainJobResponse(Message):
    summary: str
    """The answer in one sentence."""
    phase: JobPhase
    position: int
    """The job's place in its queue, from 1. 0: the job does not wait."""
    reason: str
    """The main reason, in CamelCase. For a job that was admitted and whose pods do not start: the reason of the
    problem that most pods have, such as Unschedulable. For a job that waits: QuotaExhausted, AboveQuota,
    NoQuota, Reserved, PoolFrozen, UnknownQueue, QueueStopped, QueueFrozen, QueueFull, TenantFull, NoCapacity,
    TooLarge, NoCluster, Preempting, Reserving, KeptForReservation, Backoff, Draining, BehindHead,
    WaitingForCache, ClusterGivenUp or NotEvaluated. ClusterUnreachable: the cluster in which it has, or may
    have, pods does not answer. ClusterUnusable: that cluster answers, and does not accept this service.
    NodeSilent: it waits until pods have ended whose node does not report to the cluster.
    """
    @property
    def evaluated_at(self) -> Timestamp:
        """The time of the numbers in this answer: that of the call, unless a server of the version before has
        recorded the refusal. Omitted: the job does not wait, or was not evaluated yet.
        """
    @property
    def clusters(self) -> RepeatedMessage[ClusterRefusal]:
        """Why each cluster cannot take the gang. Clusters that the caller may not see are left out."""
    @property
    def quotas(self) -> RepeatedMessage[QuotaRefusal]:
        """Why each quota cannot take the gang."""
    @property
    def admission(self) -> Admission:
        """The current or last admission. Omitted: the job has none."""
    @property
    def failure(self) -> Failure:
        """Why the job failed. Omitted: it has not failed."""
    @property
    def retry_at(self) -> Timestamp:
        """When the job is evaluated again even if nothing changes. Omitted: it is evaluated when something
        changes.
        """
    @property
    def draining(self) -> RepeatedMessage[Admission]:
        """Former admissions that still hold tokens, or whose pods are still being removed."""
    @property
    def pod_problems(self) -> RepeatedMessage[PodProblem]:
        """Why pods of the current admission do not run, as in the job's status."""
    effective_priority: int
    """The priority that decides about the position: that of the job, and what it has grown by waiting if its queue
    lets priorities grow. 0: the job does not wait, or it is 0.
    """
    @property
    def concerns(self) -> RepeatedMessage[JobConcern]:
        """Problems and requests that the phase of the job does not show."""
    @property
    def failure_logs(self) -> FailureLogs:
        """The last lines of its containers that failed, of each replica's newest attempt that is kept. Omitted:
        none has failed, or none is kept.
        """
    def __init__(
        self,
        *,
        summary: str | None = ...,
        phase: JobPhase | None = ...,
        position: int | None = ...,
        reason: str | None = ...,
        evaluated_at: Timestamp | None = ...,
        clusters: Iterable[ClusterRefusal] | None = ...,
        quotas: Iterable[QuotaRefusal] | None = ...,
        admission: Admission | None = ...,
        failure: Failure | None = ...,
        retry_at: Timestamp | None = ...,
        draining: Iterable[Admission] | None = ...,
        pod_problems: Iterable[PodProblem] | None = ...,
        effective_priority: int | None = ...,
        concerns: Iterable[JobConcern] | None = ...,
        failure_logs: FailureLogs | None = ...,
    ) -> None: ...

class ClusterRefusal(Message):
    """Why one cluster cannot take the gang now."""
    cluster: str
    reason: str
    """Cordoned, Unreachable, Unusable (it answers, and does not accept this service), NotSelected (by the job's
    placement), NoSuchFlavor, NoSuchLevel (of the job's wish for topology), Draining, TooLarge (more than the
    empty cluster, or any of its domains, can take), NoCapacity, DomainFull (all pods fit, but not as near each
    other as they must be), CapacityUnknown or Retired (a simulated cluster, and a real one is registered). In
    SimulateJobResponse also the reason of a queue that could never admit the gang.
    """
    message: str
    flavor: str
    """Empty: the refusal concerns no flavor."""
    need: int
    """How many pods must fit."""
    have: int
    """How many pods fit now."""
    @property
    def blocked_pod(self) -> BlockedPod:
        """A pod that no node takes, for TooLarge and NoCapacity. Omitted: nodes are not what is in the way."""
    simulated: bool
    """True: the cluster is a simulated one."""
    @property
    def domain(self) -> DomainRefusal:
        """What keeps the pods from being near each other, for DomainFull, and for TooLarge if they would fit
        otherwise. Omitted: domains are not what is in the way.
        """
    def __init__(
        self,
        *,
        cluster: str | None = ...,
        reason: str | None = ...,
        message: str | None = ...,
        flavor: str | None = ...,
        need: int | None = ...,
        have: int | None = ...,
        blocked_pod: BlockedPod | None = ...,
        simulated: bool | None = ...,
        domain: DomainRefusal | None = ...,
    ) -> None: ...

class DomainRefusal(Message):
    """How near the domains of a cluster come to what a gang wishes for."""
    level: str
    """The name of the level of which one domain must take all pods, or each slice."""
    domain: str
    """The values of the labels of the domain that takes most pods now, such as b1/r3. Empty: the wish is for
    slices.
    """
    slice_size: int
    """How many pods are in a slice. 0: all pods must be in one domain."""
    fits: int
    """How many of the pods fit there now; of slices, in all domains together."""
    fits_empty: int
    """The same for the domain that takes most of them when it is empty."""
    def __init__(
        self,
        *,
        level: str | None = ...,
        domain: str | None = ...,
        slice_size: int | None = ...,
        fits: int | None = ...,
        fits_empty: int | None = ...,
    ) -> None: ...

class BlockedPod(Message):
    """A pod of a gang that no node of a cluster takes, and the node that is nearest to taking it."""
    role: str
    """The replica type of the pod, such as Worker."""
    placed: int
    """How many pods like it do find a node."""
    never: bool
    """True: no node could take such a pod even if the cluster were empty."""
    node: str
    """The node with the fewest obstacles. Empty: the cluster has no node."""
    nodes: int
    """How many nodes have just these obstacles."""
    @property
    def obstacles(self) -> RepeatedMessage[PodObstacle]:
        """Everything that keeps the pod off that node."""
    def __init__(
        self,
        *,
        role: str | None = ...,
        placed: int | None = ...,
        never: bool | None = ...,
        node: str | None = ...,
        nodes: int | None = ...,
        obstacles: Iterable[PodObstacle] | None = ...,
    ) -> None: ...

class PodObstacle(Message):
    """One thing that keeps a pod off a node."""
    class Kind(int):
        @classmethod
        def Name(cls, number: int) -> str: ...
        @classmethod
        def Value(cls, name: str) -> PodObstacle.Kind: ...
        @classmethod
        def keys(cls) -> list[str]: ...
        @classmethod
        def values(cls) -> list[int]: ...
    KIND_UNSPECIFIED: PodObstacle.Kind
    KIND_RESOURCE: PodObstacle.Kind
    """The node has not enough of a resource."""
    KIND_LABEL: PodObstacle.Kind
    """The node lacks a label that the pod's node selector or its flavor requires."""
    KIND_AFFINITY: PodObstacle.Kind
    """The node does not meet an expression of the pod's required node affinity."""
    KIND_TAINT: PodObstacle.Kind
    """The pod does not tolerate a taint of the node."""
    KIND_UNSCHEDULABLE: PodObstacle.Kind
    """The node takes no new pods now: it is cordoned, not ready, under pressure or being deleted."""
    kind: PodObstacle.Kind
    name: str
    """The resource; the label as KEY=VALUE; the expression, such as `zone in (a, b)`; or the taint as
    KEY=VALUE:EFFECT. Empty for UNSCHEDULABLE, and for an affinity that no node can meet.
    """
    need: str
    """For a resource, as Kubernetes quantities: what the pod requests, what is free for it, and what the node has."""
    available: str
    allocatable: str
    flavor: str
    """For a label: the flavor that requires it. Empty: the pod's own node selector requires it."""
    def __init__(
        self,
        *,
        kind: PodObstacle.Kind | None = ...,
        name: str | None = ...,
        need: str | None = ...,
        available: str | None = ...,
        allocatable: str | None = ...,
        flavor: str | None = ...,
    ) -> None: ...

class QuotaRefusal(Message):
    """Why one quota cannot take the gang now. Amounts are in units of the flavor."""
    queue: str
    """The job's queue."""
    flavor: str
    reason: str
    """QuotaExhausted, AboveQuota (the gang needs more than the whole limit), NoQuota, Reserved (the room is kept
    for a gang that is ahead of it in the pool's waiting line), PoolFrozen or QueueFrozen (the limit is 0 until
    that ends).
    """
    need: int
    """The amount that the gang would add at this level. At a queue above the job's own: only the part beyond the
    guarantees of the queues below.
    """
    used: int
    limit: int
    @property
    def held_by(self) -> RepeatedScalar[str]:
        """The largest holders now, at most 5: jobs as `namespace/name`, external callers as `caller NAME`."""
    level: QuotaLevel
    """The level whose limit is in the way."""
    name: str
    """The name at that level: the name of the pool, project or queue, or PROJECT/NAMESPACE."""
    reserved: int
    """How much of the room is kept for others: of a pool for the head of its waiting line, and of any level for
    gangs for which others are preempted. Counts the latter only if the room would do without it.
    """
    def __init__(
        self,
        *,
        queue: str | None = ...,
        flavor: str | None = ...,
        reason: str | None = ...,
        need: int | None = ...,
        used: int | None = ...,
        limit: int | None = ...,
        held_by: Iterable[str] | None = ...,
        level: QuotaLevel | None = ...,
        name: str | None = ...,
        reserved: int | None = ...,
    ) -> None: ...

class SimulateJobRequest(Message):
    @property
    def job(self) -> Job:
        """Checked and defaulted as by CreateJob. Required, as there."""
    @property
    def manifest(self) -> Struct:
        """In place of the job's spec, as in CreateJob."""
    def __init__(
        self,
        *,
        job: Job | None = ...,
        manifest: Struct | None = ...,
    ) -> None: ...

class SimulateJobResponse(Message):
    verdict: Verdict
    summary: str
    """The answer in one sentence."""
    reason: str
    """Why the job would not be admitted now, as in ExplainJobResponse. Empty for FITS_NOW."""
    @property
    def clusters(self) -> RepeatedMessage[SimulatedCluster]:
        """Every cluster that the caller may see, by name. Empty for a job without pods."""
    @property
    def quotas(self) -> RepeatedMessage[QuotaRefusal]:
        """The quotas that are in the way: now, or for NEVER at any time."""
    @property
    def admission(self) -> Admission:
        """For FITS_NOW: the admission that the job would get, without its number, its times and the fences of its
        tokens. Clusters and pools that the caller may not see are left out, here and in the words.
        """
    @property
    def warnings(self) -> RepeatedMessage[Warning]:
        """Fields that were accepted although they are probably mistakes."""
    def __init__(
        self,
        *,
        verdict: Verdict | None = ...,
        summary: str | None = ...,
        reason: str | None = ...,
        clusters: Iterable[SimulatedCluster] | None = ...,
        quotas: Iterable[QuotaRefusal] | None = ...,
        admission: Admission | None = ...,
        warnings: Iterable[Warning] | None = ...,
    ) -> None: ...

class SimulatedCluster(Message):
    """Whether the nodes of one cluster could take a gang. The limits of its queue count, and what is used of
    them does not.
    """
    cluster: str
    verdict: Verdict
    @property
    def refusal(self) -> ClusterRefusal:
        """Why the cluster does not take the gang now. Omitted: its nodes have room now."""
    simulated: bool
    """True: no program runs in the cluster; the server simulates it."""
    def __init__(
        self,
        *,
        cluster: str | None = ...,
        verdict: Verdict | None = ...,
        refusal: ClusterRefusal | None = ...,
        simulated: bool | None = ...,
    ) -> None: ...

class ListJobEventsRequest(Message):
    namespace: str
    """Empty: `default`."""
    name: str
    """Required."""
    page_size: int
    """At most 1,000. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListJobEventsResponse(Message):
    @property
    def events(self) -> RepeatedMessage[JobEvent]: ...
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        events: Iterable[JobEvent] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class JobEvent(Message):
    """An event of a job, worded like an event of Kubernetes."""
    @property
    def time(self) -> Timestamp: ...
    type: str
    """Normal or Warning."""
    reason: str
    """CamelCase, such as PyTorchJobRunning."""
    message: str
    resource_version: str
    """The version of the job's record when the event was recorded."""
    uid: str
    """The uid of the job, since several jobs may have had the name."""
    def __init__(
        self,
        *,
        time: Timestamp | None = ...,
        type: str | None = ...,
        reason: str | None = ...,
        message: str | None = ...,
        resource_version: str | None = ...,
        uid: str | None = ...,
    ) -> None: ...

class ListJobPodsRequest(Message):
    namespace: str
    """Empty: `default`."""
    name: str
    """Required."""
    page_size: int
    """At most 1,000. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page. Each page shows the pods of its own time."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListJobPodsResponse(Message):
    @property
    def pods(self) -> RepeatedMessage[JobPod]: ...
    next_page_token: str
    """Empty: this is the last page."""
    cluster: str
    """The cluster of the pods. Empty: the job has no pods."""
    stale_reason: str
    """Why the pods are shown as they were last recorded, such as a cluster that does not answer. Empty: the
    cluster has answered, or the job has no pods.
    """
    def __init__(
        self,
        *,
        pods: Iterable[JobPod] | None = ...,
        next_page_token: str | None = ...,
        cluster: str | None = ...,
        stale_reason: str | None = ...,
    ) -> None: ...

class StreamJobLogsRequest(Message):
    namespace: str
    """Empty: `default`."""
    name: str
    """Required."""
    replica: str
    """One replica (Worker/0) or all replicas of a type (Worker). Empty: all replicas of the job."""
    container: str
    """Empty: the kind's default container if the pod has it, else the first container."""
    follow: bool
    """True: continues with new lines until the job has ended. At most 100 replicas."""
    tail_lines: int
    """The number of existing lines to return per replica, counted from the end. Omitted: all."""
    timestamps: bool
    """True: returns the time of each line."""
    previous: bool
    """True: returns the log of the run before the container's last restart within its pod. Not together with
    `follow`.
    """
    attempt: int
    """Returns the last lines that are kept of the containers that failed in this attempt, and asks no cluster.
    They have no times. Not together with `follow`, `timestamps` or `previous`. Omitted: reads the logs of the
    pods; for a replica that has no log, returns the lines that are kept of its newest attempt.
    """
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
        replica: str | None = ...,
        container: str | None = ...,
        follow: bool | None = ...,
        tail_lines: int | None = ...,
        timestamps: bool | None = ...,
        previous: bool | None = ...,
        attempt: int | None = ...,
    ) -> None: ...

class StreamJobLogsResponse(Message):
    @property
    def lines(self) -> RepeatedMessage[LogLine]:
        """Lines of one replica in the order in which it wrote them. Lines of different replicas are mixed."""
    @property
    def kept(self) -> FailureLog:
        """The lines of this message are not read from a pod now: they were kept when this container failed, and
        are all that are returned of it. Without `text`. Omitted: the lines are read from a pod.
        """
    def __init__(
        self,
        *,
        lines: Iterable[LogLine] | None = ...,
        kept: FailureLog | None = ...,
    ) -> None: ...

class LogLine(Message):
    """A line of a container's log."""
    replica: str
    """The replica, such as Worker/0."""
    container: str
    text: str
    """The line without its line break. Bytes that are not UTF-8 are replaced."""
    @property
    def time(self) -> Timestamp:
        """When the cluster took the line. Omitted: timestamps were not requested."""
    partial: bool
    """True: the line is too long for one message; the next line of this replica continues it."""
    def __init__(
        self,
        *,
        replica: str | None = ...,
        container: str | None = ...,
        text: str | None = ...,
        time: Timestamp | None = ...,
        partial: bool | None = ...,
    ) -> None: ...

class ListKindsRequest(Message):
    def __init__(self) -> None: ...

class ListKindsResponse(Message):
    @property
    def kinds(self) -> RepeatedMessage[Kind]: ...
    def __init__(
        self,
        *,
        kinds: Iterable[Kind] | None = ...,
    ) -> None: ...

class Kind(Message):
    """A kind of job: its roles, defaults, schema and an example."""
    name: str
    """The name of the kind, such as PyTorchJob."""
    api_version: str
    """The apiVersion of its manifests, such as kubeflow.org/v1."""
    replica_specs_field: str
    """The field of a manifest that holds the replica specs, such as pytorchReplicaSpecs."""
    @property
    def roles(self) -> RepeatedMessage[Role]: ...
    default_container: str
    """The container whose exit decides how the pod has ended, and whose ports are used. Empty, or missing in a
    template: the first container.
    """
    port_name: str
    """The name of the port that a replica listens on."""
    port: int
    """The number of that port, if the template names none."""
    default_restart_policy: RestartPolicy
    default_restart_scope: RestartScope
    default_backoff_limit: int
    """Omitted: no limit."""
    @property
    def kind_spec_schema(self) -> Struct:
        """The JSON schema of kind_spec."""
    @property
    def example(self) -> Struct:
        """A manifest of a job that runs."""
    description: str
    without_pods: bool
    """True: jobs of this kind have no pods. A plugin runs them at an external service, and kind_spec describes
    them.
    """
    is_default: bool
    """True: this kind serves jobs whose kind is not known, under the name that they give."""
    plugin: str
    """The id of the plugin that provides the kind; `gangway` for built-in kinds."""
    has_own_form: bool
    """True: manifests under this api_version have a form of their own, as those of batch/v1 do. The service reads
    them, as `manifest` of CreateJobRequest. False: they hold replica specs, and clients may read them too.
    """
    def __init__(
        self,
        *,
        name: str | None = ...,
        api_version: str | None = ...,
        replica_specs_field: str | None = ...,
        roles: Iterable[Role] | None = ...,
        default_container: str | None = ...,
        port_name: str | None = ...,
        port: int | None = ...,
        default_restart_policy: RestartPolicy | None = ...,
        default_restart_scope: RestartScope | None = ...,
        default_backoff_limit: int | None = ...,
        kind_spec_schema: Struct | None = ...,
        example: Struct | None = ...,
        description: str | None = ...,
        without_pods: bool | None = ...,
        is_default: bool | None = ...,
        plugin: str | None = ...,
        has_own_form: bool | None = ...,
    ) -> None: ...

class Role(Message):
    """A replica type of a kind."""
    name: str
    """Empty: the type may have any name."""
    max_replicas: int
    """Omitted: no limit."""
    min_replicas: int
    """0: a job may leave the type out."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        max_replicas: int | None = ...,
        min_replicas: int | None = ...,
    ) -> None: ...

class OnClusterLost(int):
    """Nobody can know whether pods still run in a cluster that does not answer."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> OnClusterLost: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
ON_CLUSTER_LOST_UNSPECIFIED: OnClusterLost
ON_CLUSTER_LOST_WAIT: OnClusterLost
"""They keep their admissions and their tokens, and go on once the cluster answers."""
ON_CLUSTER_LOST_MOVE: OnClusterLost
"""Once the cluster has not answered for GANGWAY_CLUSTER_MOVE_SECONDS, they run elsewhere as soon as they fit
there. If the cluster answers before that, they stay. Their programs must be ready for two copies: see
GANGWAY_FENCE.
"""

class PodSecurityLevel(int):
    """A level of Kubernetes' Pod Security Standards (of Kubernetes 1.36). Each level forbids what the level
    before it forbids, and more. Limits hold at every level.
    """
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> PodSecurityLevel: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
POD_SECURITY_LEVEL_UNSPECIFIED: PodSecurityLevel
"""The installation's default."""
POD_SECURITY_LEVEL_PRIVILEGED: PodSecurityLevel
"""Forbids only what would take a pod out of Gangway's control."""
POD_SECURITY_LEVEL_BASELINE: PodSecurityLevel
"""Forbids known ways to gain the rights of the node."""
POD_SECURITY_LEVEL_RESTRICTED: PodSecurityLevel
"""Containers must also run as users without rights, and must say so."""

class TenantLimits(Message):
    """How much the jobs of a namespace, or of all namespaces of a project, may take together, and how many
    robots there may be. Jobs that have ended do not count. 0: any amount.
    """
    namespace: str
    """The name of a namespace."""
    project: str
    """The name of a project. Jobs and robots count in the project that their namespace had when they were made."""
    max_waiting_jobs: int
    """Jobs that wait or are suspended. A create beyond it is RESOURCE_EXHAUSTED (TOO_MANY_WAITING_JOBS)."""
    max_running_jobs: int
    """Jobs that are admitted. Others wait (TenantFull)."""
    max_pods: int
    """Pods that jobs ask for, those that wait included. A create, or an update that adds pods, is
    RESOURCE_EXHAUSTED (TOO_MANY_PODS) beyond it.
    """
    max_template_bytes: int
    """Bytes of the jobs' specs with their templates. A create beyond it is RESOURCE_EXHAUSTED
    (TOO_MANY_TEMPLATE_BYTES).
    """
    @property
    def use(self) -> TenantUse:
        """What counts against the limits now. Output only."""
    max_robot_tokens: int
    """Tokens of robots that belong to the namespace, or to the project and its namespaces. Those that are revoked
    or have expired do not count. A CreateRobotToken beyond it is RESOURCE_EXHAUSTED (TOO_MANY_ROBOT_TOKENS).
    """
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        project: str | None = ...,
        max_waiting_jobs: int | None = ...,
        max_running_jobs: int | None = ...,
        max_pods: int | None = ...,
        max_template_bytes: int | None = ...,
        use: TenantUse | None = ...,
        max_robot_tokens: int | None = ...,
    ) -> None: ...

class TenantUse(Message):
    waiting_jobs: int
    running_jobs: int
    pods: int
    template_bytes: int
    robot_tokens: int
    def __init__(
        self,
        *,
        waiting_jobs: int | None = ...,
        running_jobs: int | None = ...,
        pods: int | None = ...,
        template_bytes: int | None = ...,
        robot_tokens: int | None = ...,
    ) -> None: ...

class SetTenantLimitsRequest(Message):
    @property
    def limits(self) -> TenantLimits:
        """Required. All limits are replaced."""
    def __init__(
        self,
        *,
        limits: TenantLimits | None = ...,
    ) -> None: ...

class SetTenantLimitsResponse(Message):
    @property
    def limits(self) -> TenantLimits: ...
    def __init__(
        self,
        *,
        limits: TenantLimits | None = ...,
    ) -> None: ...

class ListTenantLimitsRequest(Message):
    def __init__(self) -> None: ...

class ListTenantLimitsResponse(Message):
    @property
    def limits(self) -> RepeatedMessage[TenantLimits]: ...
    def __init__(
        self,
        *,
        limits: Iterable[TenantLimits] | None = ...,
    ) -> None: ...

class Namespace(Message):
    """A namespace of jobs. Its pods run in the Kubernetes namespace of the same name."""
    name: str
    """A DNS label. Required."""
    project: str
    """The project that new jobs of the namespace belong to. Empty: `default`."""
    default_queue: str
    """The queue of jobs that name none. Empty: `default`."""
    resource_version: str
    """The version of the record; it grows with every change. In UpdateNamespace: the version that the change is
    based on; empty accepts any version.
    """
    @property
    def create_time(self) -> Timestamp:
        """Output only."""
    @property
    def pod_policy(self) -> PodPolicy:
        """The pod policy of the namespace. Omitted in CreateNamespace: the installation's default. Omitted in
        UpdateNamespace: the policy stays as it is; an empty message restores the installation's default.
        """
    @property
    def effective_pod_policy(self) -> PodPolicy:
        """The policy that is in force: `pod_policy` on top of the installation's default. Output only."""
    keep_failure_logs: bool
    """Whether the last lines of containers that fail are kept with their jobs. Changing it to false also deletes
    those that are kept. Omitted in CreateNamespace: true. Omitted in UpdateNamespace: it stays as it is.
    """
    on_cluster_lost: OnClusterLost
    """Whether gangs wait for a lost cluster in which they ran, or move. The queue of a job, or the nearest queue
    above it that says something, counts more; a job whose run policy sets move_after decides for itself. A
    change counts at once, also for gangs whose cluster is lost already. Unspecified in CreateNamespace: MOVE;
    in UpdateNamespace: it stays as it is.
    """
    def __init__(
        self,
        *,
        name: str | None = ...,
        project: str | None = ...,
        default_queue: str | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        pod_policy: PodPolicy | None = ...,
        effective_pod_policy: PodPolicy | None = ...,
        keep_failure_logs: bool | None = ...,
        on_cluster_lost: OnClusterLost | None = ...,
    ) -> None: ...

class PodPolicy(Message):
    """The pod policy of a namespace. It judges every template of a job when the job is created or changed: the
    templates as they were sent, and with the parts that a plugin's kind adds. A value that a level requires
    may also come from the platform's own settings (GANGWAY_POD_CONFIG). Values that only the platform sets
    are the admin's, and are not judged.
    """
    level: PodSecurityLevel
    """Omitted: the installation's level and its allowances. `gangway serve`: baseline, or GANGWAY_POD_SECURITY.
    `gangway up` without authentication: baseline, and host paths with a warning.
    """
    @property
    def allow(self) -> RepeatedScalar[str]:
        """Permissions that the level alone would not give. Each is KIND or KIND=VALUE:

        - `host-network`, `host-pid`, `host-ipc`: the namespaces of the node. - `host-path=/dev/shm`: files of
        the node at this path and below it. `host-path=/data:ro`: only in read-only
          mounts. A symbolic link of the node may lead elsewhere.
        - `host-port=8080`, `host-port=30000-32000`, `host-port=*`: ports of the node. - `privileged`,
        `host-process`: privileged containers, and HostProcess containers of Windows. - `capability=IPC_LOCK`,
        `capability=ALL`: capabilities that containers add. - `sysctl=net.core.somaxconn`, `sysctl=net.core.*`:
        kernel parameters. - `volume=nfs`, `volume=csi`, …: volumes of a type whose source the template itself
        names. - `proc-mount`, `unconfined-seccomp`, `unconfined-apparmor`, `selinux-options`, `probe-host`:
        other controls of
          level baseline.
        - `run-as-root`, `privilege-escalation`, `default-capabilities`, `default-seccomp`: controls of level
        restricted. - `toleration=*`, `toleration=node-role.kubernetes.io/control-plane`: tolerations of every
        taint, or of the control
          plane's.
        - `priority-class=system-node-critical`: a priority class of the system. - `other-namespaces`: pod
        affinity that selects pods of other namespaces. - `resource-claims`: devices of resource claims, which
        no quota counts.

        An allowance never makes the policy refuse more. At most 200.
        """
    @property
    def images(self) -> PodLimit:
        """The only images of containers and image volumes. `*` stands for any characters, in the registry for any
        but a slash. A pattern without a tag takes any tag and digest; `busybox` means
        `docker.io/library/busybox`. An image with a digest needs a pattern without a tag, or with the digest.
        Omitted: any image.
        """
    @property
    def service_accounts(self) -> PodLimit:
        """The only service accounts. A pod that names none uses `default`. Omitted: any account of the namespace."""
    @property
    def tolerations(self) -> PodLimit:
        """The only tolerations: `KEY`, `KEY=VALUE`, `KEY:EFFECT` or `KEY=VALUE:EFFECT`, as `kubectl taint` writes
        taints. Without a value or an effect, any is meant. Omitted: any.
        """
    @property
    def priority_classes(self) -> PodLimit:
        """The only priority classes of Kubernetes. A pod may have none. Omitted: any class of users."""
    @property
    def node_selectors(self) -> PodLimit:
        """The only labels of nodes that node selectors and node affinity may use: `KEY`, or `KEY=VALUE`. Omitted:
        any.
        """
    def __init__(
        self,
        *,
        level: PodSecurityLevel | None = ...,
        allow: Iterable[str] | None = ...,
        images: PodLimit | None = ...,
        service_accounts: PodLimit | None = ...,
        tolerations: PodLimit | None = ...,
        priority_classes: PodLimit | None = ...,
        node_selectors: PodLimit | None = ...,
    ) -> None: ...

class PodLimit(Message):
    """The values that pods may use. Each may have `*` for any characters. Empty: none."""
    @property
    def values(self) -> RepeatedScalar[str]:
        """At most 200."""
    def __init__(
        self,
        *,
        values: Iterable[str] | None = ...,
    ) -> None: ...

class CreateNamespaceRequest(Message):
    @property
    def namespace(self) -> Namespace:
        """Required."""
    def __init__(
        self,
        *,
        namespace: Namespace | None = ...,
    ) -> None: ...

class CreateNamespaceResponse(Message):
    @property
    def namespace(self) -> Namespace: ...
    def __init__(
        self,
        *,
        namespace: Namespace | None = ...,
    ) -> None: ...

class GetNamespaceRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class GetNamespaceResponse(Message):
    @property
    def namespace(self) -> Namespace: ...
    def __init__(
        self,
        *,
        namespace: Namespace | None = ...,
    ) -> None: ...

class ListNamespacesRequest(Message):
    def __init__(self) -> None: ...

class ListNamespacesResponse(Message):
    @property
    def namespaces(self) -> RepeatedMessage[Namespace]: ...
    def __init__(
        self,
        *,
        namespaces: Iterable[Namespace] | None = ...,
    ) -> None: ...

class UpdateNamespaceRequest(Message):
    @property
    def namespace(self) -> Namespace:
        """Required. All of project and default_queue is replaced; pod_policy and keep_failure_logs too, if they
        are given.
        """
    def __init__(
        self,
        *,
        namespace: Namespace | None = ...,
    ) -> None: ...

class UpdateNamespaceResponse(Message):
    @property
    def namespace(self) -> Namespace: ...
    def __init__(
        self,
        *,
        namespace: Namespace | None = ...,
    ) -> None: ...

class DeleteNamespaceRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class DeleteNamespaceResponse(Message):
    def __init__(self) -> None: ...

class PriorityClass(Message):
    """A name for a priority of jobs."""
    name: str
    """A DNS label that does not begin with `system-`. Required."""
    value: int
    """The priority of jobs of the class; jobs with a higher priority come first. Required in CreatePriorityClass.
    In UpdatePriorityClass: omitted, or the value that the class has.
    """
    description: str
    """For people, at most 1,024 characters."""
    global_default: bool
    """True: jobs that name neither a class nor a priority get this class. At most one class is the default."""
    preemption_policy: PreemptionPolicy
    """Unspecified: LOWER_PRIORITY; in UpdatePriorityClass that of the class."""
    resource_version: str
    """The version of the record; it grows with every change. In UpdatePriorityClass: the version that the change
    is based on; empty accepts any version.
    """
    @property
    def create_time(self) -> Timestamp:
        """Output only."""
    @property
    def update_time(self) -> Timestamp:
        """Output only."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        value: int | None = ...,
        description: str | None = ...,
        global_default: bool | None = ...,
        preemption_policy: PreemptionPolicy | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        update_time: Timestamp | None = ...,
    ) -> None: ...

class CreatePriorityClassRequest(Message):
    @property
    def priority_class(self) -> PriorityClass:
        """Required."""
    def __init__(
        self,
        *,
        priority_class: PriorityClass | None = ...,
    ) -> None: ...

class CreatePriorityClassResponse(Message):
    @property
    def priority_class(self) -> PriorityClass: ...
    def __init__(
        self,
        *,
        priority_class: PriorityClass | None = ...,
    ) -> None: ...

class GetPriorityClassRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class GetPriorityClassResponse(Message):
    @property
    def priority_class(self) -> PriorityClass: ...
    def __init__(
        self,
        *,
        priority_class: PriorityClass | None = ...,
    ) -> None: ...

class ListPriorityClassesRequest(Message):
    def __init__(self) -> None: ...

class ListPriorityClassesResponse(Message):
    @property
    def priority_classes(self) -> RepeatedMessage[PriorityClass]: ...
    def __init__(
        self,
        *,
        priority_classes: Iterable[PriorityClass] | None = ...,
    ) -> None: ...

class UpdatePriorityClassRequest(Message):
    @property
    def priority_class(self) -> PriorityClass:
        """Required. The description and global_default are replaced."""
    def __init__(
        self,
        *,
        priority_class: PriorityClass | None = ...,
    ) -> None: ...

class UpdatePriorityClassResponse(Message):
    @property
    def priority_class(self) -> PriorityClass: ...
    def __init__(
        self,
        *,
        priority_class: PriorityClass | None = ...,
    ) -> None: ...

class DeletePriorityClassRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class DeletePriorityClassResponse(Message):
    def __init__(self) -> None: ...

class FairSharingStrategy(int):
    """Compares the share of the preemptor's branch, once its job is admitted, with the share of the victim's
    branch.
    """
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> FairSharingStrategy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
FAIR_SHARING_STRATEGY_UNSPECIFIED: FairSharingStrategy
"""Not allowed."""
FAIR_SHARING_STRATEGY_LESS_THAN_OR_EQUAL_TO_FINAL_SHARE: FairSharingStrategy
"""At most the victim's share once the victim is gone."""
FAIR_SHARING_STRATEGY_LESS_THAN_INITIAL_SHARE: FairSharingStrategy
"""Below the victim's share while the victim is there."""

class WithinQueuePreemption(int):
    """Which jobs of the same queue may be preempted for a waiting job."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> WithinQueuePreemption: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
WITHIN_QUEUE_PREEMPTION_UNSPECIFIED: WithinQueuePreemption
"""NEVER."""
WITHIN_QUEUE_PREEMPTION_NEVER: WithinQueuePreemption
"""None."""
WITHIN_QUEUE_PREEMPTION_LOWER_PRIORITY: WithinQueuePreemption
"""Jobs with a lower priority."""
WITHIN_QUEUE_PREEMPTION_LOWER_OR_NEWER_EQUAL_PRIORITY: WithinQueuePreemption
"""Jobs with a lower priority, and newer jobs with the same priority."""

class ReclaimWithinTree(int):
    """Which jobs of other queues of the tree that borrow may be preempted when the queue takes back its quota."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> ReclaimWithinTree: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
RECLAIM_WITHIN_TREE_UNSPECIFIED: ReclaimWithinTree
"""NEVER."""
RECLAIM_WITHIN_TREE_NEVER: ReclaimWithinTree
"""None."""
RECLAIM_WITHIN_TREE_LOWER_PRIORITY: ReclaimWithinTree
"""Jobs with a lower priority."""
RECLAIM_WITHIN_TREE_ANY: ReclaimWithinTree
"""All of them."""

class BorrowWithinPolicy(int):
    """Whether a job whose queue borrows may preempt."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> BorrowWithinPolicy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
BORROW_WITHIN_POLICY_UNSPECIFIED: BorrowWithinPolicy
"""NEVER."""
BORROW_WITHIN_POLICY_NEVER: BorrowWithinPolicy
"""It may not."""
BORROW_WITHIN_POLICY_LOWER_PRIORITY: BorrowWithinPolicy
"""It may preempt jobs with a lower priority."""

class FlavorSearch(int):
    """Whether a flavor ends the search, or the next one is tried too."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> FlavorSearch: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
FLAVOR_SEARCH_UNSPECIFIED: FlavorSearch
"""The default of the field."""
FLAVOR_SEARCH_MAY_STOP_SEARCH: FlavorSearch
"""The flavor ends the search."""
FLAVOR_SEARCH_TRY_NEXT_FLAVOR: FlavorSearch
"""The next flavor is tried too."""

class FlavorPreference(int):
    """Which one of several flavors is better."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> FlavorPreference: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
FLAVOR_PREFERENCE_UNSPECIFIED: FlavorPreference
"""One that needs no preemption, then one that borrows less."""
FLAVOR_PREFERENCE_PREEMPTION_OVER_BORROWING: FlavorPreference
"""One that needs no borrowing, also if it needs preemption."""
FLAVOR_PREFERENCE_BORROWING_OVER_PREEMPTION: FlavorPreference
"""One that needs no preemption, also if it borrows."""

class FairSharing(Message):
    """Turns fair sharing on for a tree of queues: the branch with the lower share of what its tree lends goes
    first. The share of a queue is the largest over all resources of (its use beyond its own quota) / (what
    its tree can lend of the resource) / weight.
    """
    @property
    def strategies(self) -> RepeatedScalar[FairSharingStrategy]:
        """The comparisons that decide whether a job may preempt one of another branch, in the order in which they
        are tried: either one of them, or both in the order of the enum. Empty: both.
        """
    def __init__(
        self,
        *,
        strategies: Iterable[FairSharingStrategy] | None = ...,
    ) -> None: ...

class QueuePreemption(Message):
    """Which admitted jobs may be preempted for jobs of the queue. The fields are those of Kueue's
    ClusterQueue.
    """
    within_queue: WithinQueuePreemption
    """Unspecified: NEVER."""
    reclaim_within_tree: ReclaimWithinTree
    """Unspecified: NEVER."""
    @property
    def borrow_within(self) -> BorrowWithin:
        """Omitted: the policy is NEVER."""
    def __init__(
        self,
        *,
        within_queue: WithinQueuePreemption | None = ...,
        reclaim_within_tree: ReclaimWithinTree | None = ...,
        borrow_within: BorrowWithin | None = ...,
    ) -> None: ...

class BorrowWithin(Message):
    """Which jobs of other queues of the tree that borrow may be preempted for a job whose queue borrows too."""
    policy: BorrowWithinPolicy
    """Unspecified: NEVER. LOWER_PRIORITY needs a reclaim_within_tree other than NEVER."""
    max_priority: int
    """Only jobs up to this priority are preempted. Omitted: jobs of any priority below that of the waiting job.
    Only with a policy other than NEVER.
    """
    def __init__(
        self,
        *,
        policy: BorrowWithinPolicy | None = ...,
        max_priority: int | None = ...,
    ) -> None: ...

class FlavorFungibility(Message):
    """Which of its flavors a queue uses, if the first one has no room within the queue's own quota. The fields
    are those of Kueue's ClusterQueue.
    """
    when_can_borrow: FlavorSearch
    """For a flavor that fits only by borrowing. Unspecified: MAY_STOP_SEARCH."""
    when_can_preempt: FlavorSearch
    """For a flavor that fits only by preempting. Unspecified: TRY_NEXT_FLAVOR."""
    preference: FlavorPreference
    """Which one of several flavors is better, if none fits without borrowing or preempting. Only if both other
    fields are TRY_NEXT_FLAVOR. Unspecified: one that needs no preemption, then one that borrows less.
    """
    def __init__(
        self,
        *,
        when_can_borrow: FlavorSearch | None = ...,
        when_can_preempt: FlavorSearch | None = ...,
        preference: FlavorPreference | None = ...,
    ) -> None: ...

class MinRuntime(Message):
    """How long an admitted job of the queue runs before it may be preempted. If no queue up to the root sets
    it, a job that was preempted before is protected for as long as its last backoff was.
    """
    @property
    def preempt(self) -> Duration:
        """Before it is preempted for a job of the same queue, at most 366 days. Omitted: as for the queue above."""
    @property
    def reclaim(self) -> Duration:
        """Before another queue reclaims what it uses, at most 366 days. Omitted: as for the queue above."""
    def __init__(
        self,
        *,
        preempt: Duration | None = ...,
        reclaim: Duration | None = ...,
    ) -> None: ...

class PriorityAgeing(Message):
    """Raises the priority of a waiting job by a step for each interval that it has waited, so that others do
    not pass it for ever. Only the order of admission uses this effective priority. Preemption compares the
    jobs' own priorities.
    """
    @property
    def interval(self) -> Duration:
        """From one second to 366 days. A job waits from its creation, or from the end of its last admission.
        Required.
        """
    step: int
    """From 1 to 1,000,000,000. Omitted: 1."""
    limit: int
    """The most by which the priority rises: from 1 to 1,000,000,000. It also stays below the value of the next
    higher priority class. Required.
    """
    def __init__(
        self,
        *,
        interval: Duration | None = ...,
        step: int | None = ...,
        limit: int | None = ...,
    ) -> None: ...

class QueueStrategy(int):
    """Decides whether gangs may pass each other within a queue. The order is by priority, then by age."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> QueueStrategy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
QUEUE_STRATEGY_UNSPECIFIED: QueueStrategy
"""BEST_EFFORT_FIFO."""
QUEUE_STRATEGY_STRICT_FIFO: QueueStrategy
"""A gang that cannot be admitted yet holds back all gangs behind it."""
QUEUE_STRATEGY_BEST_EFFORT_FIFO: QueueStrategy
"""Gangs that fit may pass a gang that cannot be admitted yet."""

class QueueStopPolicy(int):
    """Decides whether a queue, and all queues below it, admit jobs. Callers of ResourceManager get tokens in a
    stopped queue too; FreezeQueue stops them as well.
    """
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> QueueStopPolicy: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
QUEUE_STOP_POLICY_UNSPECIFIED: QueueStopPolicy
"""In CreateQueue: NONE. In UpdateQueue: the policy stays as it is."""
QUEUE_STOP_POLICY_NONE: QueueStopPolicy
"""Jobs are admitted."""
QUEUE_STOP_POLICY_HOLD: QueueStopPolicy
"""No job is admitted, and no gang grows. Jobs that run go on. Jobs that wait keep their age."""
QUEUE_STOP_POLICY_HOLD_AND_DRAIN: QueueStopPolicy
"""As HOLD, and admissions are undone: pods end within their grace time, then tokens are released, and the jobs
wait again.
"""

class Queue(Message):
    """A queue of jobs with quotas of flavors. Queues form trees. The use of a queue beyond its guarantee
    (nominal less lending_limit) is also charged to its parent. So a parent bounds what its queues lend to
    each other, and may have a nominal quota of its own. Jobs may name any queue, also one with queues below
    it.
    """
    name: str
    """A DNS label. Required."""
    strategy: QueueStrategy
    """Unspecified: BEST_EFFORT_FIFO."""
    @property
    def quotas(self) -> RepeatedMessage[FlavorQuota]:
        """At most one quota per flavor, 64 in total. Flavors are tried in this order."""
    resource_version: str
    """The version of the record; it grows with every change. In UpdateQueue: the version that the change is based
    on; empty accepts any version.
    """
    @property
    def create_time(self) -> Timestamp:
        """Output only."""
    @property
    def update_time(self) -> Timestamp:
        """Output only."""
    @property
    def use(self) -> QueueUse:
        """Output only."""
    parent: str
    """The queue above this one. It must exist, must not be this queue or one below it, and no path to a root may
    be longer than 64 queues. Empty: the queue is a root, and cannot borrow.
    """
    stop_policy: QueueStopPolicy
    """Stops this queue and all queues below it. ExplainJob of a job that waits for that has the reason
    QueueStopped.
    """
    stopped_by: str
    """Output only. The queue whose stop_policy stops this one: itself, or a queue above it. Empty: jobs are
    admitted.
    """
    max_running_jobs: int
    """The most jobs of this queue and of all queues below it that may be admitted at the same time. A limit below
    the present number ends no job. ExplainJob of a job that waits for this has the reason QueueFull. 0: no
    limit.
    """
    weight: float
    """The queue's weight among its siblings when they compete for lent quota. Without fair_sharing at the root of
    the tree, it only divides the share that is shown. 0: the queue gets only what no sibling wants. Else from
    0.000001 to 1,000,000. Omitted: 1.
    """
    @property
    def fair_sharing(self) -> FairSharing:
        """Turns fair sharing on for the whole tree. Only for a queue without a parent. Omitted: off."""
    @property
    def preemption(self) -> QueuePreemption:
        """Omitted: no job is preempted for jobs of the queue."""
    @property
    def flavor_fungibility(self) -> FlavorFungibility:
        """Omitted: every field has its default."""
    @property
    def min_runtime(self) -> MinRuntime:
        """Omitted: as for the queue above; none at a root."""
    max_waiting_jobs: int
    """The most jobs of this queue in phase WAITING or SUSPENDED. Jobs of queues below it do not count. Each create
    beyond it is refused with RESOURCE_EXHAUSTED (TOO_MANY_WAITING_JOBS). A limit below the present number ends
    no job, and jobs that wait again or are resumed are never refused. 0: no limit.
    """
    @property
    def freeze(self) -> Freeze:
        """Output only. Who has frozen the queue itself, by FreezeQueue. Omitted: it is not frozen."""
    frozen_by: str
    """Output only. The nearest queue that is frozen: itself, or a queue above it. ExplainJob of a job that waits
    for that has the reason QueueFrozen. Empty: none is.
    """
    @property
    def ageing(self) -> PriorityAgeing:
        """Omitted: priorities of jobs that wait do not grow."""
    max_preemptions: int
    """Protects a job of the queue after it has been preempted this many times. 0: no job is preempted. The
    scheduling policy of a job may set a smaller number. Omitted: as for the queue above; at a root, no limit.
    """
    preemptions_per_hour: int
    """The most jobs that may be preempted within an hour for jobs of this queue. Preemptions for jobs of queues
    below it do not count. While too few are left for a job, no job is preempted for it, and ExplainJob says
    until when. 0: no preemption. Omitted: no limit.
    """
    @property
    def reserve_after(self) -> Duration:
        """After a job of this queue has waited this long for nodes or quota, it gets a reservation: capacity that
        is freed in the cluster that has room for it soonest is kept for it. At most 366 days. 0: never.
        Omitted: 10 minutes.
        """
    on_cluster_lost: OnClusterLost
    """Whether gangs of this queue, and of queues below it that do not say, wait for a lost cluster in which they
    ran, or move. A job whose run policy sets move_after decides for itself. A change counts at once, also for
    gangs whose cluster is lost already. Unspecified: as for the queue above; at a root, as the namespace of the
    job says.
    """
    def __init__(
        self,
        *,
        name: str | None = ...,
        strategy: QueueStrategy | None = ...,
        quotas: Iterable[FlavorQuota] | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        update_time: Timestamp | None = ...,
        use: QueueUse | None = ...,
        parent: str | None = ...,
        stop_policy: QueueStopPolicy | None = ...,
        stopped_by: str | None = ...,
        max_running_jobs: int | None = ...,
        weight: float | None = ...,
        fair_sharing: FairSharing | None = ...,
        preemption: QueuePreemption | None = ...,
        flavor_fungibility: FlavorFungibility | None = ...,
        min_runtime: MinRuntime | None = ...,
        max_waiting_jobs: int | None = ...,
        freeze: Freeze | None = ...,
        frozen_by: str | None = ...,
        ageing: PriorityAgeing | None = ...,
        max_preemptions: int | None = ...,
        preemptions_per_hour: int | None = ...,
        reserve_after: Duration | None = ...,
        on_cluster_lost: OnClusterLost | None = ...,
    ) -> None: ...

class FlavorQuota(Message):
    """The quota of one flavor. A queue cannot use flavors for which it has no quota."""
    flavor: str
    """The pool that the flavor is counted in, such as gpu/h100. Required."""
    resource: str
    """The extended resource that pods request, such as nvidia.com/gpu. Required."""
    nominal: int
    """How much the queue may use without borrowing. 0: the queue can only borrow."""
    borrowing_limit: int
    """How much the queue may use beyond nominal, if queues above it have that much left. Omitted: no limit. 0:
    nothing. Only for a queue with a parent.
    """
    lending_limit: int
    """How much of nominal other queues of the tree may use while this queue does not. Omitted, or more than
    nominal: all of it. 0: nothing. Only for a queue with a parent.
    """
    granted: int
    """Output only. How much more than nominal the queue has by a grant, as GrantQuota says. 0: nothing."""
    @property
    def granted_until(self) -> Timestamp:
        """Output only. When the grant ends. Omitted: there is none."""
    def __init__(
        self,
        *,
        flavor: str | None = ...,
        resource: str | None = ...,
        nominal: int | None = ...,
        borrowing_limit: int | None = ...,
        lending_limit: int | None = ...,
        granted: int | None = ...,
        granted_until: Timestamp | None = ...,
    ) -> None: ...

class QueueUse(Message):
    """The use of a queue."""
    @property
    def used(self) -> ScalarMap[str, int]:
        """By flavor. For a queue with queues below it: also what these use beyond their guarantees."""
    waiting_jobs: int
    """The number of jobs of the queue that wait."""
    admitted_jobs: int
    """The number of jobs of the queue that are admitted."""
    @property
    def borrowed(self) -> ScalarMap[str, int]:
        """By flavor: how much of `used` is beyond the queue's own quota and what the queues below lend to it.
        Flavors without such use are omitted.
        """
    @property
    def lent(self) -> ScalarMap[str, int]:
        """By flavor: how much of the queue's own quota is in use by other queues of the tree. If several queues
        could have lent it, it is split in proportion to what each could lend. Flavors that are not lent are
        omitted.
        """
    share: float
    """1000 times what the queue has borrowed, divided by what its tree can lend of that resource, divided by the
    queue's weight, rounded up. The resource with the largest share counts. Infinite for a queue of weight 0
    that borrows. 0 for a root.
    """
    @property
    def lost(self) -> ScalarMap[str, int]:
        """By flavor: how much of `used` jobs of the queue itself hold in clusters that count as lost. Nobody can
        know whether their pods run. Flavors without such use are omitted.
        """
    def __init__(
        self,
        *,
        used: Mapping[str, int] | None = ...,
        waiting_jobs: int | None = ...,
        admitted_jobs: int | None = ...,
        borrowed: Mapping[str, int] | None = ...,
        lent: Mapping[str, int] | None = ...,
        share: float | None = ...,
        lost: Mapping[str, int] | None = ...,
    ) -> None: ...

class CreateQueueRequest(Message):
    @property
    def queue(self) -> Queue:
        """Required."""
    def __init__(
        self,
        *,
        queue: Queue | None = ...,
    ) -> None: ...

class CreateQueueResponse(Message):
    @property
    def queue(self) -> Queue: ...
    def __init__(
        self,
        *,
        queue: Queue | None = ...,
    ) -> None: ...

class GetQueueRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class GetQueueResponse(Message):
    @property
    def queue(self) -> Queue: ...
    def __init__(
        self,
        *,
        queue: Queue | None = ...,
    ) -> None: ...

class ListQueuesRequest(Message):
    def __init__(self) -> None: ...

class ListQueuesResponse(Message):
    @property
    def queues(self) -> RepeatedMessage[Queue]: ...
    def __init__(
        self,
        *,
        queues: Iterable[Queue] | None = ...,
    ) -> None: ...

class UpdateQueueRequest(Message):
    @property
    def queue(self) -> Queue:
        """Required. All settings are replaced: strategy, parent, quotas, max_running_jobs, max_waiting_jobs,
        weight, fair_sharing, preemption, flavor_fungibility, min_runtime, ageing, max_preemptions,
        preemptions_per_hour, reserve_after and on_cluster_lost; the stop policy only if it is set.
        """
    def __init__(
        self,
        *,
        queue: Queue | None = ...,
    ) -> None: ...

class UpdateQueueResponse(Message):
    @property
    def queue(self) -> Queue: ...
    def __init__(
        self,
        *,
        queue: Queue | None = ...,
    ) -> None: ...

class FreezeQueueRequest(Message):
    name: str
    """Required."""
    reason: str
    """Why it is frozen, at most 1,024 characters. ExplainJob shows it. Empty: no reason is given."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class FreezeQueueResponse(Message):
    @property
    def queue(self) -> Queue: ...
    def __init__(
        self,
        *,
        queue: Queue | None = ...,
    ) -> None: ...

class UnfreezeQueueRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class UnfreezeQueueResponse(Message):
    @property
    def queue(self) -> Queue: ...
    def __init__(
        self,
        *,
        queue: Queue | None = ...,
    ) -> None: ...

class QuotaGrant(Message):
    """A nominal quota that is raised until a time."""
    queue: str
    flavor: str
    """The pool."""
    amount: int
    """How much more than its nominal quota the queue has."""
    @property
    def until(self) -> Timestamp: ...
    actor: str
    """The caller who granted it; `anonymous` without authentication."""
    reason: str
    """Empty: the caller gave none."""
    @property
    def create_time(self) -> Timestamp: ...
    def __init__(
        self,
        *,
        queue: str | None = ...,
        flavor: str | None = ...,
        amount: int | None = ...,
        until: Timestamp | None = ...,
        actor: str | None = ...,
        reason: str | None = ...,
        create_time: Timestamp | None = ...,
    ) -> None: ...

class GrantQuotaRequest(Message):
    queue: str
    """Required."""
    flavor: str
    """The pool, a flavor of the queue's quotas. Required."""
    amount: int
    """How much more than its nominal quota the queue has. Required."""
    @property
    def until(self) -> Timestamp: ...
    @property
    def duration(self) -> Duration:
        """From the time of the call, by the clock of the server."""
    reason: str
    """At most 1,024 characters. Empty: no reason is given."""
    def __init__(
        self,
        *,
        queue: str | None = ...,
        flavor: str | None = ...,
        amount: int | None = ...,
        until: Timestamp | None = ...,
        duration: Duration | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class GrantQuotaResponse(Message):
    @property
    def grant(self) -> QuotaGrant: ...
    def __init__(
        self,
        *,
        grant: QuotaGrant | None = ...,
    ) -> None: ...

class ListQuotaGrantsRequest(Message):
    queue: str
    """Empty: all queues."""
    def __init__(
        self,
        *,
        queue: str | None = ...,
    ) -> None: ...

class ListQuotaGrantsResponse(Message):
    @property
    def grants(self) -> RepeatedMessage[QuotaGrant]: ...
    def __init__(
        self,
        *,
        grants: Iterable[QuotaGrant] | None = ...,
    ) -> None: ...

class RevokeQuotaGrantRequest(Message):
    queue: str
    """Required."""
    flavor: str
    """The pool. Required."""
    def __init__(
        self,
        *,
        queue: str | None = ...,
        flavor: str | None = ...,
    ) -> None: ...

class RevokeQuotaGrantResponse(Message):
    def __init__(self) -> None: ...

class DeleteQueueRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class DeleteQueueResponse(Message):
    def __init__(self) -> None: ...

class AuditFilter(Message):
    """Selects audit entries. All fields that are set must match; empty fields match every entry."""
    action: str
    """The name of an audited RPC, such as CreateQueue or DeleteJob, EndQuotaGrant, PermissionDenied, or
    ReadSettings: the server counts a file's settings from then on.
    """
    actor: str
    """The caller."""
    subject: str
    """The subject, such as a queue, a pool or a job as NAMESPACE/NAME."""
    rpc: str
    """The RPC as `package.Service/Method`, such as gangway.v1.QueueService/DeleteQueue. It finds refused calls
    too.
    """
    @property
    def since(self) -> Timestamp:
        """Entries of this time or later."""
    @property
    def until(self) -> Timestamp:
        """Entries before this time."""
    def __init__(
        self,
        *,
        action: str | None = ...,
        actor: str | None = ...,
        subject: str | None = ...,
        rpc: str | None = ...,
        since: Timestamp | None = ...,
        until: Timestamp | None = ...,
    ) -> None: ...

class ListAuditEntriesRequest(Message):
    @property
    def filter(self) -> AuditFilter:
        """Omitted: all entries."""
    page_size: int
    """At most 1,000. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        filter: AuditFilter | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListAuditEntriesResponse(Message):
    @property
    def entries(self) -> RepeatedMessage[AuditEntry]: ...
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        entries: Iterable[AuditEntry] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class AuditEntry(Message):
    """The record of a change, of a refused call, or of an administrator who read of credentials. Each job of a
    batch has an entry of its own. A call that changed nothing has none.
    """
    @property
    def time(self) -> Timestamp: ...
    actor: str
    """The caller; `anonymous` without authentication, `system:gangway` for the service itself."""
    action: str
    """The name of the RPC. BatchCreateJobs: CreateJob. PermissionDenied: a call was refused for lack of a
    permission; a caller that repeats it has one entry at once, and one a minute with the number of repetitions.
    """
    subject: str
    """The thing that was changed or that the refused call was about: a name, NAMESPACE/NAME of a job, or
    POOL/TOKEN. Empty: all pools, all robots, or the installation.
    """
    reason: str
    """The reason that the caller gave. Empty: none."""
    @property
    def details(self) -> Struct:
        """The change: for example the settings of the queue or pool `before` and `after` it, or the token and its
        holder. A refusal: the permission that was lacking, and the scope. No secrets.
        """
    method: str
    """How the caller was known: anonymous, oidc, kubernetes, certificate or robot. Empty for the service itself."""
    peer: str
    """ADDRESS:PORT of the other end of the caller's connection."""
    rpc: str
    """The RPC as `package.Service/Method`."""
    request_id: str
    """The header `x-request-id` of the call, or what the service gave to it. The answer has it as a header."""
    outcome: str
    """The name of the call's status: OK, or for refused calls PERMISSION_DENIED, NOT_FOUND or INVALID_ARGUMENT."""
    def __init__(
        self,
        *,
        time: Timestamp | None = ...,
        actor: str | None = ...,
        action: str | None = ...,
        subject: str | None = ...,
        reason: str | None = ...,
        details: Struct | None = ...,
        method: str | None = ...,
        peer: str | None = ...,
        rpc: str | None = ...,
        request_id: str | None = ...,
        outcome: str | None = ...,
    ) -> None: ...

class Durability(int):
    """The store that decides how much of a pool is in use."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> Durability: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
DURABILITY_UNSPECIFIED: Durability
"""In a request: no change; LEDGER for a new pool."""
DURABILITY_LEDGER: Durability
"""PostgreSQL. Every grant is recorded before it is answered. No failure of Redis loses a token or grants too
much.
"""
DURABILITY_REDIS: Durability
"""Redis alone. Faster, but a fail-over of Redis may forget the last grants, so that more than the quota is in
use until these end. For limits that protect a service from load.
"""

class AllocationStatus(int):
    """The result of a request for tokens."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> AllocationStatus: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
ALLOCATION_STATUS_UNSPECIFIED: AllocationStatus
ALLOCATION_STATUS_GRANTED: AllocationStatus
"""The token is held, with this fence, until expire_time."""
ALLOCATION_STATUS_EXHAUSTED: AllocationStatus
"""The pool or a queue is used up or frozen, or the room of the pool is kept for the head of its waiting line."""
ALLOCATION_STATUS_NAMESPACE_QUOTA_EXCEEDED: AllocationStatus
"""The pool has room, but the project or the namespace has used up its share."""

class ReleaseOutcome(int):
    """The result of a release."""
    @classmethod
    def Name(cls, number: int) -> str: ...
    @classmethod
    def Value(cls, name: str) -> ReleaseOutcome: ...
    @classmethod
    def keys(cls) -> list[str]: ...
    @classmethod
    def values(cls) -> list[int]: ...
RELEASE_OUTCOME_UNSPECIFIED: ReleaseOutcome
RELEASE_OUTCOME_RELEASED: ReleaseOutcome
"""The token was held and is released now."""
RELEASE_OUTCOME_NOT_HELD: ReleaseOutcome
"""The token is not held: it was released before, has lapsed, or was never granted."""
RELEASE_OUTCOME_OTHER_HOLDER: ReleaseOutcome
"""Only in a batch. Another holder holds the token; it stays held."""
RELEASE_OUTCOME_OTHER_SCOPE: ReleaseOutcome
"""Only in a batch. The token is held under another project or namespace; it stays held."""
RELEASE_OUTCOME_UNKNOWN_POOL: ReleaseOutcome
"""Only in a batch. The pool does not exist."""
RELEASE_OUTCOME_DENIED: ReleaseOutcome
"""The caller may see the pool, and may not release this token: it lacks the permission tokens.allocate, or
tokens.manage for another holder.
"""

class Pool(Message):
    """A pool: a resource with a quota, of which tokens are granted."""
    name: str
    quota: int
    """How much may be in use at the same time. Omitted: only the queues that name the pool limit it."""
    project_default: int
    """How much one project may use, unless the request names less. Omitted: no limit."""
    namespace_default: int
    """How much one namespace of a project may use, unless the request names less. Omitted: no limit."""
    queue: str
    """The queue that is charged for requests that name none. Empty: no queue."""
    domain: str
    """The quota domain. Only pools of one domain can be granted together."""
    @property
    def default_lease(self) -> Duration:
        """The lease of tokens whose request names none. Omitted or zero: these tokens do not lapse."""
    @property
    def max_lease(self) -> Duration:
        """The longest lease that a request may name. Omitted: no limit."""
    durability: Durability
    version: int
    """The version of the record; it grows with every change."""
    @property
    def create_time(self) -> Timestamp: ...
    @property
    def update_time(self) -> Timestamp: ...
    used: int
    """How much is in use."""
    tokens: int
    """The number of tokens that are held."""
    waiters: int
    """The number of requests in the pool's waiting line."""
    @property
    def freeze(self) -> Freeze:
        """Who has frozen the pool. Omitted: it is not frozen."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        quota: int | None = ...,
        project_default: int | None = ...,
        namespace_default: int | None = ...,
        queue: str | None = ...,
        domain: str | None = ...,
        default_lease: Duration | None = ...,
        max_lease: Duration | None = ...,
        durability: Durability | None = ...,
        version: int | None = ...,
        create_time: Timestamp | None = ...,
        update_time: Timestamp | None = ...,
        used: int | None = ...,
        tokens: int | None = ...,
        waiters: int | None = ...,
        freeze: Freeze | None = ...,
    ) -> None: ...

class RegisterResourceQuotaRequest(Message):
    resource_namespace: str
    """The pool, such as gpu/h100 or ex:warehouse:adhoc; sub-namespaces are joined by ':'. Required."""
    quota: int
    """How much may be in use at the same time. 0: nothing is granted. 9007199254740991: no limit; then only the
    queues that name the pool limit it. Required.
    """
    project_default: int
    """How much one project may use. 0: nothing. 9007199254740991: no limit. Omitted: no change; no limit in a new
    pool.
    """
    namespace_default: int
    """How much one namespace of a project may use. 0: nothing. 9007199254740991: no limit. Omitted: no change; no
    limit in a new pool.
    """
    queue: str
    """The queue that is charged, together with the queues above it, for requests that name none. It must exist.
    Empty: no queue. Omitted: no change; no queue in a new pool.
    """
    domain: str
    """The quota domain, a DNS label. Cannot change after the pool was created. Empty: no change; `default` for a
    new pool.
    """
    @property
    def default_lease(self) -> Duration:
        """The lease of tokens whose request names none, at most 366 days. 0: these tokens do not lapse. Omitted:
        no change; in a new pool 1 hour, and none if the request gives only name and quota.
        """
    @property
    def max_lease(self) -> Duration:
        """The longest lease that a request may name, at most 366 days. 0: no limit. Omitted: no change; no limit
        in a new pool.
        """
    durability: Durability
    """Cannot change after the pool was created. Unspecified: no change; LEDGER for a new pool."""
    version: int
    """The version that the change is based on, as GetPool returns it. 0: any version."""
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        quota: int | None = ...,
        project_default: int | None = ...,
        namespace_default: int | None = ...,
        queue: str | None = ...,
        domain: str | None = ...,
        default_lease: Duration | None = ...,
        max_lease: Duration | None = ...,
        durability: Durability | None = ...,
        version: int | None = ...,
    ) -> None: ...

class RegisterResourceQuotaResponse(Message):
    @property
    def pool(self) -> Pool: ...
    def __init__(
        self,
        *,
        pool: Pool | None = ...,
    ) -> None: ...

class Violation(Message):
    """The limit that prevents a grant."""
    class Scope(int):
        """The level at which the limit is counted."""
        @classmethod
        def Name(cls, number: int) -> str: ...
        @classmethod
        def Value(cls, name: str) -> Violation.Scope: ...
        @classmethod
        def keys(cls) -> list[str]: ...
        @classmethod
        def values(cls) -> list[int]: ...
    SCOPE_UNSPECIFIED: Violation.Scope
    SCOPE_POOL: Violation.Scope
    """All use of the pool."""
    SCOPE_PROJECT: Violation.Scope
    """The use of the pool by the project."""
    SCOPE_NAMESPACE: Violation.Scope
    """The use of the pool by the namespace."""
    SCOPE_QUEUE: Violation.Scope
    """The use of the pool by a queue."""
    scope: Violation.Scope
    name: str
    """The name at that level: the name of the pool, project or queue, or PROJECT/NAMESPACE."""
    used: int
    limit: int
    requested: int
    """The amount that was requested; it is greater than limit - used - reserved_for_head."""
    reserved_for_head: int
    """How much of the pool's room is kept for the head of its waiting line."""
    resource_namespace: str
    """The pool in which the limit is counted."""
    frozen: bool
    """True: the pool or the queue is frozen. Its limit is 0 until that ends."""
    def __init__(
        self,
        *,
        scope: Violation.Scope | None = ...,
        name: str | None = ...,
        used: int | None = ...,
        limit: int | None = ...,
        requested: int | None = ...,
        reserved_for_head: int | None = ...,
        resource_namespace: str | None = ...,
        frozen: bool | None = ...,
    ) -> None: ...

class ResourceConstraint(Message):
    """A limit that a request sets for itself."""
    value: int
    """How much may be in use at most, this request included. 0: nothing."""
    def __init__(
        self,
        *,
        value: int | None = ...,
    ) -> None: ...

class ResourceConstraintsSpec(Message):
    """Limits for the use of the pool by the request's own project and namespace, in addition to the pool's
    defaults; the lower limit applies. An omitted scope has the pool's default alone. Names are compared as
    a whole: a limit of project team does not count project team1.
    """
    @property
    def project_scope(self) -> ResourceConstraint:
        """The limit of the project."""
    @property
    def namespace_scope(self) -> ResourceConstraint:
        """The limit of the namespace."""
    def __init__(
        self,
        *,
        project_scope: ResourceConstraint | None = ...,
        namespace_scope: ResourceConstraint | None = ...,
    ) -> None: ...

class AllocateResourceRequest(Message):
    resource_namespace: str
    """The pool, such as gpu/h100 or ex:warehouse:adhoc; sub-namespaces are joined by ':'. Required."""
    allocation_token: str
    """The caller's name for this grant, unique within the pool, such as ex:PROJECT:DOMAIN:EXECUTION-0. Repeating a
    call with the same token is safe. Required.
    """
    project: str
    """The project that is charged. Empty: `default`."""
    namespace: str
    """The namespace of the project that is charged. Empty: `default`."""
    amount: int
    """How much of the pool. Omitted: 1."""
    @property
    def resource_constraints(self) -> ResourceConstraintsSpec:
        """Omitted: the pool's defaults apply."""
    holder: str
    """The name under which the token may be renewed and released. Empty: the caller's identity, which is
    `anonymous` without authentication.
    """
    @property
    def lease(self) -> Duration:
        """The token lapses this long after its grant or its last renewal. Must not exceed the pool's max_lease.
        Omitted: the pool's default_lease.
        """
    priority: int
    """Compared with requests in the pool's waiting line; higher comes first. Takes no token away. Room that is
    kept for the head of the waiting line is granted only to a request with a higher priority than the head.
    """
    queue: str
    """The queue that is charged, together with the queues above it; it must exist. Empty: the pool's own queue."""
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        allocation_token: str | None = ...,
        project: str | None = ...,
        namespace: str | None = ...,
        amount: int | None = ...,
        resource_constraints: ResourceConstraintsSpec | None = ...,
        holder: str | None = ...,
        lease: Duration | None = ...,
        priority: int | None = ...,
        queue: str | None = ...,
    ) -> None: ...

class AllocateResourceResponse(Message):
    status: AllocationStatus
    fence: int
    """The number of the grant; a later grant has a higher number. Pass it to the resource that the token protects,
    so that it can refuse requests with an older one. 0: nothing was granted.
    """
    @property
    def expire_time(self) -> Timestamp:
        """When the token lapses unless it is renewed. Omitted: it does not lapse, or was not granted."""
    @property
    def violated(self) -> Violation:
        """The limit that is in the way. Omitted: the token was granted."""
    held: bool
    """True: the token was already held, and nothing was charged."""
    def __init__(
        self,
        *,
        status: AllocationStatus | None = ...,
        fence: int | None = ...,
        expire_time: Timestamp | None = ...,
        violated: Violation | None = ...,
        held: bool | None = ...,
    ) -> None: ...

class ReleaseResourceRequest(Message):
    resource_namespace: str
    """The pool. Required."""
    allocation_token: str
    """The token. Required."""
    holder: str
    """The holder of the token. Empty: the caller's identity."""
    project: str
    """If set, the token must be held under this project."""
    namespace: str
    """If set, the token must be held under this namespace."""
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        allocation_token: str | None = ...,
        holder: str | None = ...,
        project: str | None = ...,
        namespace: str | None = ...,
    ) -> None: ...

class ReleaseResourceResponse(Message):
    outcome: ReleaseOutcome
    """RELEASED or NOT_HELD."""
    def __init__(
        self,
        *,
        outcome: ReleaseOutcome | None = ...,
    ) -> None: ...

class BatchAllocateResourcesRequest(Message):
    @property
    def lines(self) -> RepeatedMessage[AllocateResourceRequest]:
        """1 to 1,000 allocations, granted together. Each has its own pool, token, project, namespace, amount,
        constraints, lease and queue. Holder and priority must be empty in each: those of the batch apply.
        """
    holder: str
    """The name under which the tokens may be renewed and released. Empty: the caller's identity."""
    @property
    def lease(self) -> Duration:
        """The lease of allocations that name none. Omitted: the default_lease of each allocation's pool."""
    priority: int
    """As in AllocateResourceRequest."""
    def __init__(
        self,
        *,
        lines: Iterable[AllocateResourceRequest] | None = ...,
        holder: str | None = ...,
        lease: Duration | None = ...,
        priority: int | None = ...,
    ) -> None: ...

class BatchAllocateResourcesResponse(Message):
    status: AllocationStatus
    fence: int
    """The number of the grant, shared by all allocations. 0: nothing was granted."""
    @property
    def violated(self) -> Violation:
        """The limit that is in the way. Omitted: the allocations were granted."""
    line: int
    """The index of the allocation that `violated` is about, from 0."""
    @property
    def lines(self) -> RepeatedMessage[AllocatedLine]:
        """The granted allocations in the order of the request. Empty: nothing was granted."""
    held: bool
    """True: the tokens were already held, and nothing was charged."""
    def __init__(
        self,
        *,
        status: AllocationStatus | None = ...,
        fence: int | None = ...,
        violated: Violation | None = ...,
        line: int | None = ...,
        lines: Iterable[AllocatedLine] | None = ...,
        held: bool | None = ...,
    ) -> None: ...

class AllocatedLine(Message):
    """One allocation of a granted batch."""
    resource_namespace: str
    allocation_token: str
    @property
    def expire_time(self) -> Timestamp:
        """When the token lapses unless it is renewed. Omitted: it does not lapse."""
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        allocation_token: str | None = ...,
        expire_time: Timestamp | None = ...,
    ) -> None: ...

class BatchReleaseResourcesRequest(Message):
    @property
    def lines(self) -> RepeatedMessage[ReleaseResourceRequest]:
        """1 to 1,000 releases."""
    def __init__(
        self,
        *,
        lines: Iterable[ReleaseResourceRequest] | None = ...,
    ) -> None: ...

class BatchReleaseResourcesResponse(Message):
    @property
    def outcomes(self) -> RepeatedScalar[ReleaseOutcome]:
        """One outcome per release, in the order of the request."""
    def __init__(
        self,
        *,
        outcomes: Iterable[ReleaseOutcome] | None = ...,
    ) -> None: ...

class AllocationLine(Message):
    """Names one token."""
    resource_namespace: str
    """The pool. Required."""
    allocation_token: str
    """The token. Required."""
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        allocation_token: str | None = ...,
    ) -> None: ...

class RenewAllocationsRequest(Message):
    @property
    def lines(self) -> RepeatedMessage[AllocationLine]:
        """1 to 1,000 allocations."""
    @property
    def lease(self) -> Duration:
        """The new lease, counted from now. Must not exceed the max_lease of any pool that an allocation names.
        Omitted: the default_lease of each allocation's pool.
        """
    holder: str
    """The holder of the tokens. Empty: the caller's identity."""
    def __init__(
        self,
        *,
        lines: Iterable[AllocationLine] | None = ...,
        lease: Duration | None = ...,
        holder: str | None = ...,
    ) -> None: ...

class RenewAllocationsResponse(Message):
    @property
    def results(self) -> RepeatedMessage[RenewResult]:
        """One result per allocation, in the order of the request."""
    def __init__(
        self,
        *,
        results: Iterable[RenewResult] | None = ...,
    ) -> None: ...

class RenewResult(Message):
    """The result of one renewal."""
    class Outcome(int):
        @classmethod
        def Name(cls, number: int) -> str: ...
        @classmethod
        def Value(cls, name: str) -> RenewResult.Outcome: ...
        @classmethod
        def keys(cls) -> list[str]: ...
        @classmethod
        def values(cls) -> list[int]: ...
    OUTCOME_UNSPECIFIED: RenewResult.Outcome
    OUTCOME_RENEWED: RenewResult.Outcome
    """The lease runs until expire_time."""
    OUTCOME_LOST: RenewResult.Outcome
    """The token has lapsed, was released, or was never granted. Another caller may hold the room by now. Final."""
    OUTCOME_OTHER_HOLDER: RenewResult.Outcome
    """Another holder holds the token."""
    OUTCOME_UNKNOWN_POOL: RenewResult.Outcome
    """The pool does not exist."""
    OUTCOME_DENIED: RenewResult.Outcome
    """The caller may see the pool, and may not renew this token: it lacks the permission tokens.allocate, or
    tokens.manage for another holder.
    """
    outcome: RenewResult.Outcome
    @property
    def expire_time(self) -> Timestamp:
        """When the token lapses unless it is renewed again. Omitted: it does not lapse, or was not renewed."""
    fence: int
    """The number of the grant. 0: the token was not renewed."""
    def __init__(
        self,
        *,
        outcome: RenewResult.Outcome | None = ...,
        expire_time: Timestamp | None = ...,
        fence: int | None = ...,
    ) -> None: ...

class WaitForResourceRequest(Message):
    """The same fields as AllocateResourceRequest."""
    resource_namespace: str
    """The pool, such as gpu/h100 or ex:warehouse:adhoc; sub-namespaces are joined by ':'. Required."""
    allocation_token: str
    """The caller's name for this grant, unique within the pool, such as ex:PROJECT:DOMAIN:EXECUTION-0. Repeating a
    call with the same token is safe. Required.
    """
    project: str
    """The project that is charged. Empty: `default`."""
    namespace: str
    """The namespace of the project that is charged. Empty: `default`."""
    amount: int
    """How much of the pool. Omitted: 1."""
    @property
    def resource_constraints(self) -> ResourceConstraintsSpec:
        """Omitted: the pool's defaults apply."""
    holder: str
    """The name under which the token may be renewed and released. Empty: the caller's identity, which is
    `anonymous` without authentication.
    """
    @property
    def lease(self) -> Duration:
        """The token lapses this long after its grant or its last renewal. Must not exceed the pool's max_lease.
        Omitted: the pool's default_lease.
        """
    priority: int
    """Orders the pool's waiting line; higher comes first, and among equals the older request."""
    queue: str
    """The queue that is charged, together with the queues above it; it must exist. Empty: the pool's own queue."""
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        allocation_token: str | None = ...,
        project: str | None = ...,
        namespace: str | None = ...,
        amount: int | None = ...,
        resource_constraints: ResourceConstraintsSpec | None = ...,
        holder: str | None = ...,
        lease: Duration | None = ...,
        priority: int | None = ...,
        queue: str | None = ...,
    ) -> None: ...

class WaitForResourceResponse(Message):
    @property
    def position(self) -> LinePosition:
        """The request waits."""
    @property
    def granted(self) -> AllocateResourceResponse:
        """The grant, with status GRANTED. It is the last message."""
    def __init__(
        self,
        *,
        position: LinePosition | None = ...,
        granted: AllocateResourceResponse | None = ...,
    ) -> None: ...

class LinePosition(Message):
    """A place in the waiting line of a pool."""
    position: int
    """From 1, the head of the waiting line."""
    @property
    def violated(self) -> Violation:
        """The limit that is in the way. Omitted: none; the grant follows in a moment."""
    def __init__(
        self,
        *,
        position: int | None = ...,
        violated: Violation | None = ...,
    ) -> None: ...

class GetPoolRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class GetPoolResponse(Message):
    @property
    def pool(self) -> Pool: ...
    def __init__(
        self,
        *,
        pool: Pool | None = ...,
    ) -> None: ...

class ListPoolsRequest(Message):
    prefix: str
    """Returns only pools whose names begin with this. Empty: all pools."""
    page_size: int
    """At most 1,000. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        prefix: str | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListPoolsResponse(Message):
    @property
    def pools(self) -> RepeatedMessage[Pool]: ...
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        pools: Iterable[Pool] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class DeletePoolRequest(Message):
    name: str
    """Required."""
    version: int
    """The version that GetPool returned. 0: any version."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        version: int | None = ...,
    ) -> None: ...

class DeletePoolResponse(Message):
    def __init__(self) -> None: ...

class FreezePoolRequest(Message):
    name: str
    """Required."""
    reason: str
    """Why it is frozen, at most 1,024 characters. ExplainJob shows it. Empty: no reason is given."""
    def __init__(
        self,
        *,
        name: str | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class FreezePoolResponse(Message):
    @property
    def pool(self) -> Pool: ...
    def __init__(
        self,
        *,
        pool: Pool | None = ...,
    ) -> None: ...

class UnfreezePoolRequest(Message):
    name: str
    """Required."""
    def __init__(
        self,
        *,
        name: str | None = ...,
    ) -> None: ...

class UnfreezePoolResponse(Message):
    @property
    def pool(self) -> Pool: ...
    def __init__(
        self,
        *,
        pool: Pool | None = ...,
    ) -> None: ...

class AllocationFilter(Message):
    """Selects tokens. All fields that are set must match; empty fields match every token."""
    pool: str
    project: str
    namespace: str
    holder: str
    """The holder: a caller's, or job/NAMESPACE/NAME/ADMISSION."""
    @property
    def older_than(self) -> Duration:
        """Matches tokens that were granted at least this long ago, at most 3,650 days. Cannot be combined with a
        pool of durability REDIS, which does not keep grant times.
        """
    never_lapses: bool
    """True: only tokens of callers that do not lapse, so that only their holders or an admin end them. The ledger
    knows this from the grant: a token that got a lease by a later renewal is left out, and a page may be short.
    Cannot be combined with a pool of durability REDIS.
    """
    def __init__(
        self,
        *,
        pool: str | None = ...,
        project: str | None = ...,
        namespace: str | None = ...,
        holder: str | None = ...,
        older_than: Duration | None = ...,
        never_lapses: bool | None = ...,
    ) -> None: ...

class ListAllocationsRequest(Message):
    @property
    def filter(self) -> AllocationFilter:
        """Omitted: all tokens."""
    page_size: int
    """At most 1,000. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        filter: AllocationFilter | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListAllocationsResponse(Message):
    @property
    def allocations(self) -> RepeatedMessage[Allocation]: ...
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        allocations: Iterable[Allocation] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class Allocation(Message):
    """A token that is held."""
    resource_namespace: str
    """The pool."""
    allocation_token: str
    amount: int
    project: str
    namespace: str
    queue: str
    """The queue that is charged. Empty: none."""
    holder: str
    """The holder: a caller's, or job/NAMESPACE/NAME/ADMISSION."""
    fence: int
    """The number of the grant."""
    @property
    def grant_time(self) -> Timestamp:
        """Omitted: the pool has durability REDIS, which does not keep grant times."""
    @property
    def expire_time(self) -> Timestamp:
        """When the token lapses unless it is renewed. Omitted: it does not lapse, or the counters are being
        rebuilt.
        """
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        allocation_token: str | None = ...,
        amount: int | None = ...,
        project: str | None = ...,
        namespace: str | None = ...,
        queue: str | None = ...,
        holder: str | None = ...,
        fence: int | None = ...,
        grant_time: Timestamp | None = ...,
        expire_time: Timestamp | None = ...,
    ) -> None: ...

class ForceReleaseRequest(Message):
    resource_namespace: str
    """The pool. Required."""
    allocation_token: str
    """The token. Required."""
    reason: str
    """Why the token is released; kept in the audit entry. Required, at most 1,024 characters."""
    def __init__(
        self,
        *,
        resource_namespace: str | None = ...,
        allocation_token: str | None = ...,
        reason: str | None = ...,
    ) -> None: ...

class ForceReleaseResponse(Message):
    outcome: ReleaseOutcome
    """RELEASED or NOT_HELD."""
    def __init__(
        self,
        *,
        outcome: ReleaseOutcome | None = ...,
    ) -> None: ...

class ReconcileQuotaRequest(Message):
    pool: str
    """Empty: all pools."""
    dry_run: bool
    """True: compares and repairs nothing."""
    def __init__(
        self,
        *,
        pool: str | None = ...,
        dry_run: bool | None = ...,
    ) -> None: ...

class ReconcileQuotaResponse(Message):
    @property
    def differences(self) -> RepeatedMessage[QuotaDifference]:
        """Empty: no difference was found."""
    repaired: bool
    """True: something was repaired."""
    epoch: int
    """The epoch of the quota domain after the call. It grows when counters are rebuilt."""
    def __init__(
        self,
        *,
        differences: Iterable[QuotaDifference] | None = ...,
        repaired: bool | None = ...,
        epoch: int | None = ...,
    ) -> None: ...

class QuotaDifference(Message):
    """A difference between counters, ledger and holders."""
    class Kind(int):
        @classmethod
        def Name(cls, number: int) -> str: ...
        @classmethod
        def Value(cls, name: str) -> QuotaDifference.Kind: ...
        @classmethod
        def keys(cls) -> list[str]: ...
        @classmethod
        def values(cls) -> list[int]: ...
    KIND_UNSPECIFIED: QuotaDifference.Kind
    KIND_COUNTER_ONLY: QuotaDifference.Kind
    """The counters hold a token that the ledger does not have."""
    KIND_LEDGER_ONLY: QuotaDifference.Kind
    """The ledger has a token that the counters do not hold."""
    KIND_SUM_DIFFERS: QuotaDifference.Kind
    """The sums of the counters and of the ledger for one scope differ."""
    KIND_LEDGER_SUM_DIFFERS: QuotaDifference.Kind
    """The ledger's sum for one scope is not the sum of its tokens."""
    KIND_HOLDER_GONE: QuotaDifference.Kind
    """The admission that holds a token has ended."""
    kind: QuotaDifference.Kind
    pool: str
    subject: str
    """The token, or the scope of the sum."""
    counters: int
    """The value of the counters. Omitted: they have none."""
    ledger: int
    """The value of the ledger. Omitted: it has none."""
    repaired: bool
    def __init__(
        self,
        *,
        kind: QuotaDifference.Kind | None = ...,
        pool: str | None = ...,
        subject: str | None = ...,
        counters: int | None = ...,
        ledger: int | None = ...,
        repaired: bool | None = ...,
    ) -> None: ...

class Runtime(Message):
    """A template of the jobs of a TrainJob."""
    namespace: str
    """The namespace of a TrainingRuntime. Empty: a ClusterTrainingRuntime, of the whole installation."""
    name: str
    """A DNS name. Required."""
    @property
    def labels(self) -> ScalarMap[str, str]:
        """At most 64 labels, with keys and values as in Kubernetes."""
    @property
    def spec(self) -> Struct:
        """The spec of a TrainingRuntime of trainer.kubeflow.org/v1alpha1: mlPolicy, podGroupPolicy, which has no
        effect, and template, which has a JobSet. At most 256 KiB as JSON. Required in CreateRuntime and
        UpdateRuntime. Lists omit it. Everyone who may see the runtime sees it, so it is no place for secrets.
        """
    resource_version: str
    """The version of the record; it grows with every change. Empty for a shipped runtime. In UpdateRuntime: the
    version that the change is based on; empty accepts any version.
    """
    @property
    def create_time(self) -> Timestamp:
        """Omitted for a shipped runtime. Output only."""
    shipped: bool
    """True: the runtime is shipped with Gangway, and never changes. Output only."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
        labels: Mapping[str, str] | None = ...,
        spec: Struct | None = ...,
        resource_version: str | None = ...,
        create_time: Timestamp | None = ...,
        shipped: bool | None = ...,
    ) -> None: ...

class CreateRuntimeRequest(Message):
    @property
    def runtime(self) -> Runtime:
        """Required."""
    validate_only: bool
    """True: checks the request and answers as the real call would, and changes nothing."""
    def __init__(
        self,
        *,
        runtime: Runtime | None = ...,
        validate_only: bool | None = ...,
    ) -> None: ...

class CreateRuntimeResponse(Message):
    @property
    def runtime(self) -> Runtime: ...
    def __init__(
        self,
        *,
        runtime: Runtime | None = ...,
    ) -> None: ...

class GetRuntimeRequest(Message):
    namespace: str
    """Empty: a runtime of the installation."""
    name: str
    """Required."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
    ) -> None: ...

class GetRuntimeResponse(Message):
    @property
    def runtime(self) -> Runtime: ...
    def __init__(
        self,
        *,
        runtime: Runtime | None = ...,
    ) -> None: ...

class ListRuntimesRequest(Message):
    namespace: str
    """Returns the runtimes of this namespace and of the installation. Empty: those of the installation alone."""
    all_namespaces: bool
    """True: returns the runtimes of all namespaces that the caller may see, and of the installation. The namespace
    must be empty.
    """
    page_size: int
    """The most runtimes that are returned. 0: 100."""
    page_token: str
    """next_page_token of the previous page. Empty: the first page."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        all_namespaces: bool | None = ...,
        page_size: int | None = ...,
        page_token: str | None = ...,
    ) -> None: ...

class ListRuntimesResponse(Message):
    @property
    def runtimes(self) -> RepeatedMessage[Runtime]:
        """Without their specs."""
    next_page_token: str
    """Empty: this is the last page."""
    def __init__(
        self,
        *,
        runtimes: Iterable[Runtime] | None = ...,
        next_page_token: str | None = ...,
    ) -> None: ...

class UpdateRuntimeRequest(Message):
    @property
    def runtime(self) -> Runtime:
        """Required. The labels and the spec are replaced."""
    validate_only: bool
    """True: checks the request and answers as the real call would, and changes nothing."""
    def __init__(
        self,
        *,
        runtime: Runtime | None = ...,
        validate_only: bool | None = ...,
    ) -> None: ...

class UpdateRuntimeResponse(Message):
    @property
    def runtime(self) -> Runtime: ...
    def __init__(
        self,
        *,
        runtime: Runtime | None = ...,
    ) -> None: ...

class DeleteRuntimeRequest(Message):
    namespace: str
    """Empty: a runtime of the installation."""
    name: str
    """Required."""
    def __init__(
        self,
        *,
        namespace: str | None = ...,
        name: str | None = ...,
    ) -> None: ...

class DeleteRuntimeResponse(Message):
    def __init__(self) -> None: ...

class ErrorInfo(Message):
    reason: str
    domain: str
    @property
    def metadata(self) -> ScalarMap[str, str]: ...
    def __init__(
        self,
        *,
        reason: str | None = ...,
        domain: str | None = ...,
        metadata: Mapping[str, str] | None = ...,
    ) -> None: ...

class RetryInfo(Message):
    @property
    def retry_delay(self) -> Duration: ...
    def __init__(
        self,
        *,
        retry_delay: Duration | None = ...,
    ) -> None: ...

class DebugInfo(Message):
    @property
    def stack_entries(self) -> RepeatedScalar[str]: ...
    detail: str
    def __init__(
        self,
        *,
        stack_entries: Iterable[str] | None = ...,
        detail: str | None = ...,
    ) -> None: ...

class QuotaFailure(Message):
    class Violation(Message):
        subject: str
        description: str
        api_service: str
        quota_metric: str
        quota_id: str
        @property
        def quota_dimensions(self) -> ScalarMap[str, str]: ...
        quota_value: int
        future_quota_value: int
        def __init__(
            self,
            *,
            subject: str | None = ...,
            description: str | None = ...,
            api_service: str | None = ...,
            quota_metric: str | None = ...,
            quota_id: str | None = ...,
            quota_dimensions: Mapping[str, str] | None = ...,
            quota_value: int | None = ...,
            future_quota_value: int | None = ...,
        ) -> None: ...
    @property
    def violations(self) -> RepeatedMessage[QuotaFailure.Violation]: ...
    def __init__(
        self,
        *,
        violations: Iterable[QuotaFailure.Violation] | None = ...,
    ) -> None: ...

class PreconditionFailure(Message):
    class Violation(Message):
        type: str
        subject: str
        description: str
        def __init__(
            self,
            *,
            type: str | None = ...,
            subject: str | None = ...,
            description: str | None = ...,
        ) -> None: ...
    @property
    def violations(self) -> RepeatedMessage[PreconditionFailure.Violation]: ...
    def __init__(
        self,
        *,
        violations: Iterable[PreconditionFailure.Violation] | None = ...,
    ) -> None: ...

class BadRequest(Message):
    class FieldViolation(Message):
        field: str
        description: str
        reason: str
        @property
        def localized_message(self) -> LocalizedMessage: ...
        def __init__(
            self,
            *,
            field: str | None = ...,
            description: str | None = ...,
            reason: str | None = ...,
            localized_message: LocalizedMessage | None = ...,
        ) -> None: ...
    @property
    def field_violations(self) -> RepeatedMessage[BadRequest.FieldViolation]: ...
    def __init__(
        self,
        *,
        field_violations: Iterable[BadRequest.FieldViolation] | None = ...,
    ) -> None: ...

class RequestInfo(Message):
    request_id: str
    serving_data: str
    def __init__(
        self,
        *,
        request_id: str | None = ...,
        serving_data: str | None = ...,
    ) -> None: ...

class ResourceInfo(Message):
    resource_type: str
    resource_name: str
    owner: str
    description: str
    def __init__(
        self,
        *,
        resource_type: str | None = ...,
        resource_name: str | None = ...,
        owner: str | None = ...,
        description: str | None = ...,
    ) -> None: ...

class Help(Message):
    class Link(Message):
        description: str
        url: str
        def __init__(
            self,
            *,
            description: str | None = ...,
            url: str | None = ...,
        ) -> None: ...
    @property
    def links(self) -> RepeatedMessage[Help.Link]: ...
    def __init__(
        self,
        *,
        links: Iterable[Help.Link] | None = ...,
    ) -> None: ...

class LocalizedMessage(Message):
    locale: str
    message: str
    def __init__(
        self,
        *,
        locale: str | None = ...,
        message: str | None = ...,
    ) -> None: ...
