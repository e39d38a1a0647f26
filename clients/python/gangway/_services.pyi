"""One class for each service of the API. Made by `npm run generate`."""

from __future__ import annotations

from typing import Any, AsyncIterator, Iterator

from . import v1

class Rpc:
    """One method of the API."""
    service: str
    name: str
    path: str
    request: Any
    response: Any
    is_stream: bool

RPCS: dict[str, Rpc]
"""All methods, by their names such as `JobService/GetJob`."""

def bind(service: str, caller: Any) -> Any: ...

class AccessService:
    """Tells who calls and what callers may do, and keeps roles, bindings and the tokens of robots.

    A role is a set of permissions such as `jobs.create`. A binding gives it to a subject or a group at a
    scope. Where the service asks for credentials, a call needs a permission, and what no binding allows is
    denied: with PERMISSION_DENIED (PERMISSION_DENIED; the details name `permission` and `scope`) if the
    caller may see the thing, and with the answer for a thing that does not exist if it may not. A change is
    UNAVAILABLE (ACCESS_UNKNOWN) while the server has not read roles and bindings for a minute. Without
    credentials every caller may do everything.

    Every call of every service may fail with UNAUTHENTICATED (UNAUTHENTICATED): the service asks for
    credentials and the call shows none, or it shows one that does not count. The message says why. A stream
    also ends so when the credential that opened it expires or is withdrawn: call again with a new one, and
    resume a watch with its last cursor.
    """
    def WhoAmI(
        self, request: v1.WhoAmIRequest, *, timeout: float | None = None
    ) -> v1.WhoAmIResponse:
        """Returns the identity of the caller, as the service sees it."""
    def CreateRobotToken(
        self, request: v1.CreateRobotTokenRequest, *, timeout: float | None = None
    ) -> v1.CreateRobotTokenResponse:
        """Makes a robot with a secret token, and returns the token this one time. A server that takes tokens
        of robots knows whoever shows it as `robot:` and the name. A caller needs `robots.create` at the
        scope of the robot.

        INVALID_ARGUMENT: the scope is wrong. NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace of the scope
        does not exist. ALREADY_EXISTS (ROBOT_EXISTS): a robot has the name, or had it. PERMISSION_DENIED
        (BEYOND_CALLER): bindings give the robot of this name permissions that the caller does not have
        itself. RESOURCE_EXHAUSTED (TOO_MANY_ROBOTS): there are as many robots that are not revoked as there
        may be. RESOURCE_EXHAUSTED (TOO_MANY_ROBOTS_OF_CALLER): the caller has made as many robots whose
        tokens count as it may. RESOURCE_EXHAUSTED (TOO_MANY_ROBOT_TOKENS): the namespace or its project, or
        the project, has as many robots whose tokens count as its max_robot_tokens allows.
        """
    def ListRobotTokens(
        self, request: v1.ListRobotTokensRequest, *, timeout: float | None = None
    ) -> v1.ListRobotTokensResponse:
        """Returns the robots at the scopes where the caller has `robots.get`, by name, revoked ones included,
        without their tokens.
        """
    def RevokeRobotToken(
        self, request: v1.RevokeRobotTokenRequest, *, timeout: float | None = None
    ) -> v1.RevokeRobotTokenResponse:
        """Ends the token of a robot for ever: within seconds its calls are UNAUTHENTICATED, and its streams
        end. Revoking it again changes nothing. A caller needs `robots.revoke` at the scope of the robot.

        NOT_FOUND (ROBOT_NOT_FOUND): there is no such robot, or the caller may not see it.
        """
    def CheckAccess(
        self, request: v1.CheckAccessRequest, *, timeout: float | None = None
    ) -> v1.CheckAccessResponse:
        """Tells whether the caller has a permission at a scope.

        INVALID_ARGUMENT: there is no such permission, or the scope is wrong.
        """
    def CreateRole(
        self, request: v1.CreateRoleRequest, *, timeout: float | None = None
    ) -> v1.CreateRoleResponse:
        """Creates a role. Recorded for ListAuditEntries.

        ALREADY_EXISTS (ROLE_EXISTS): a role has the name. INVALID_ARGUMENT: fields are wrong.
        PERMISSION_DENIED (BEYOND_CALLER): the role has permissions that the caller does not have itself.
        FAILED_PRECONDITION (ACCESS_FILE): a file gives all roles and bindings. RESOURCE_EXHAUSTED
        (TOO_MANY_ROLES): there are as many as there may be.
        """
    def GetRole(
        self, request: v1.GetRoleRequest, *, timeout: float | None = None
    ) -> v1.GetRoleResponse:
        """Returns one role.

        NOT_FOUND (ROLE_NOT_FOUND): the role does not exist.
        """
    def ListRoles(
        self, request: v1.ListRolesRequest, *, timeout: float | None = None
    ) -> v1.ListRolesResponse:
        """Returns all roles, ordered by name."""
    def DeleteRole(
        self, request: v1.DeleteRoleRequest, *, timeout: float | None = None
    ) -> v1.DeleteRoleResponse:
        """Deletes a role. To change a role, create another one, bind that, and delete this one.

        NOT_FOUND (ROLE_NOT_FOUND): the role does not exist. ABORTED (STALE_RESOURCE_VERSION): it has
        another version than resource_version. FAILED_PRECONDITION: a binding has the role (ROLE_IN_USE),
        the role is built in (ROLE_BUILT_IN), or a file gives it (ACCESS_FILE).
        """
    def CreateBinding(
        self, request: v1.CreateBindingRequest, *, timeout: float | None = None
    ) -> v1.CreateBindingResponse:
        """Gives a role to a subject or a group at a scope. Recorded for ListAuditEntries.

        ALREADY_EXISTS (BINDING_EXISTS): a binding has the name. INVALID_ARGUMENT: fields are wrong, or the
        role does not exist. PERMISSION_DENIED (BEYOND_CALLER): the caller does not have all of the role's
        permissions there itself. FAILED_PRECONDITION (ACCESS_FILE): a file gives all roles and bindings.
        RESOURCE_EXHAUSTED (TOO_MANY_BINDINGS): there are as many as there may be.
        """
    def GetBinding(
        self, request: v1.GetBindingRequest, *, timeout: float | None = None
    ) -> v1.GetBindingResponse:
        """Returns one binding.

        NOT_FOUND (BINDING_NOT_FOUND): the binding does not exist, or is at a scope whose bindings the
        caller may not see.
        """
    def ListBindings(
        self, request: v1.ListBindingsRequest, *, timeout: float | None = None
    ) -> v1.ListBindingsResponse:
        """Returns the bindings that the caller may see, ordered by name."""
    def DeleteBinding(
        self, request: v1.DeleteBindingRequest, *, timeout: float | None = None
    ) -> v1.DeleteBindingResponse:
        """Takes a binding away. Calls are refused within seconds, and streams end. Recorded for
        ListAuditEntries.

        NOT_FOUND (BINDING_NOT_FOUND): as in GetBinding. ABORTED (STALE_RESOURCE_VERSION): it has another
        version than resource_version. FAILED_PRECONDITION (ACCESS_FILE): a file gives it.
        """

class AsyncAccessService:
    """Tells who calls and what callers may do, and keeps roles, bindings and the tokens of robots.

    A role is a set of permissions such as `jobs.create`. A binding gives it to a subject or a group at a
    scope. Where the service asks for credentials, a call needs a permission, and what no binding allows is
    denied: with PERMISSION_DENIED (PERMISSION_DENIED; the details name `permission` and `scope`) if the
    caller may see the thing, and with the answer for a thing that does not exist if it may not. A change is
    UNAVAILABLE (ACCESS_UNKNOWN) while the server has not read roles and bindings for a minute. Without
    credentials every caller may do everything.

    Every call of every service may fail with UNAUTHENTICATED (UNAUTHENTICATED): the service asks for
    credentials and the call shows none, or it shows one that does not count. The message says why. A stream
    also ends so when the credential that opened it expires or is withdrawn: call again with a new one, and
    resume a watch with its last cursor.
    """
    async def WhoAmI(
        self, request: v1.WhoAmIRequest, *, timeout: float | None = None
    ) -> v1.WhoAmIResponse:
        """Returns the identity of the caller, as the service sees it."""
    async def CreateRobotToken(
        self, request: v1.CreateRobotTokenRequest, *, timeout: float | None = None
    ) -> v1.CreateRobotTokenResponse:
        """Makes a robot with a secret token, and returns the token this one time. A server that takes tokens
        of robots knows whoever shows it as `robot:` and the name. A caller needs `robots.create` at the
        scope of the robot.

        INVALID_ARGUMENT: the scope is wrong. NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace of the scope
        does not exist. ALREADY_EXISTS (ROBOT_EXISTS): a robot has the name, or had it. PERMISSION_DENIED
        (BEYOND_CALLER): bindings give the robot of this name permissions that the caller does not have
        itself. RESOURCE_EXHAUSTED (TOO_MANY_ROBOTS): there are as many robots that are not revoked as there
        may be. RESOURCE_EXHAUSTED (TOO_MANY_ROBOTS_OF_CALLER): the caller has made as many robots whose
        tokens count as it may. RESOURCE_EXHAUSTED (TOO_MANY_ROBOT_TOKENS): the namespace or its project, or
        the project, has as many robots whose tokens count as its max_robot_tokens allows.
        """
    async def ListRobotTokens(
        self, request: v1.ListRobotTokensRequest, *, timeout: float | None = None
    ) -> v1.ListRobotTokensResponse:
        """Returns the robots at the scopes where the caller has `robots.get`, by name, revoked ones included,
        without their tokens.
        """
    async def RevokeRobotToken(
        self, request: v1.RevokeRobotTokenRequest, *, timeout: float | None = None
    ) -> v1.RevokeRobotTokenResponse:
        """Ends the token of a robot for ever: within seconds its calls are UNAUTHENTICATED, and its streams
        end. Revoking it again changes nothing. A caller needs `robots.revoke` at the scope of the robot.

        NOT_FOUND (ROBOT_NOT_FOUND): there is no such robot, or the caller may not see it.
        """
    async def CheckAccess(
        self, request: v1.CheckAccessRequest, *, timeout: float | None = None
    ) -> v1.CheckAccessResponse:
        """Tells whether the caller has a permission at a scope.

        INVALID_ARGUMENT: there is no such permission, or the scope is wrong.
        """
    async def CreateRole(
        self, request: v1.CreateRoleRequest, *, timeout: float | None = None
    ) -> v1.CreateRoleResponse:
        """Creates a role. Recorded for ListAuditEntries.

        ALREADY_EXISTS (ROLE_EXISTS): a role has the name. INVALID_ARGUMENT: fields are wrong.
        PERMISSION_DENIED (BEYOND_CALLER): the role has permissions that the caller does not have itself.
        FAILED_PRECONDITION (ACCESS_FILE): a file gives all roles and bindings. RESOURCE_EXHAUSTED
        (TOO_MANY_ROLES): there are as many as there may be.
        """
    async def GetRole(
        self, request: v1.GetRoleRequest, *, timeout: float | None = None
    ) -> v1.GetRoleResponse:
        """Returns one role.

        NOT_FOUND (ROLE_NOT_FOUND): the role does not exist.
        """
    async def ListRoles(
        self, request: v1.ListRolesRequest, *, timeout: float | None = None
    ) -> v1.ListRolesResponse:
        """Returns all roles, ordered by name."""
    async def DeleteRole(
        self, request: v1.DeleteRoleRequest, *, timeout: float | None = None
    ) -> v1.DeleteRoleResponse:
        """Deletes a role. To change a role, create another one, bind that, and delete this one.

        NOT_FOUND (ROLE_NOT_FOUND): the role does not exist. ABORTED (STALE_RESOURCE_VERSION): it has
        another version than resource_version. FAILED_PRECONDITION: a binding has the role (ROLE_IN_USE),
        the role is built in (ROLE_BUILT_IN), or a file gives it (ACCESS_FILE).
        """
    async def CreateBinding(
        self, request: v1.CreateBindingRequest, *, timeout: float | None = None
    ) -> v1.CreateBindingResponse:
        """Gives a role to a subject or a group at a scope. Recorded for ListAuditEntries.

        ALREADY_EXISTS (BINDING_EXISTS): a binding has the name. INVALID_ARGUMENT: fields are wrong, or the
        role does not exist. PERMISSION_DENIED (BEYOND_CALLER): the caller does not have all of the role's
        permissions there itself. FAILED_PRECONDITION (ACCESS_FILE): a file gives all roles and bindings.
        RESOURCE_EXHAUSTED (TOO_MANY_BINDINGS): there are as many as there may be.
        """
    async def GetBinding(
        self, request: v1.GetBindingRequest, *, timeout: float | None = None
    ) -> v1.GetBindingResponse:
        """Returns one binding.

        NOT_FOUND (BINDING_NOT_FOUND): the binding does not exist, or is at a scope whose bindings the
        caller may not see.
        """
    async def ListBindings(
        self, request: v1.ListBindingsRequest, *, timeout: float | None = None
    ) -> v1.ListBindingsResponse:
        """Returns the bindings that the caller may see, ordered by name."""
    async def DeleteBinding(
        self, request: v1.DeleteBindingRequest, *, timeout: float | None = None
    ) -> v1.DeleteBindingResponse:
        """Takes a binding away. Calls are refused within seconds, and streams end. Recorded for
        ListAuditEntries.

        NOT_FOUND (BINDING_NOT_FOUND): as in GetBinding. ABORTED (STALE_RESOURCE_VERSION): it has another
        version than resource_version. FAILED_PRECONDITION (ACCESS_FILE): a file gives it.
        """

class ClusterService:
    """Registers and shows the Kubernetes clusters that gangs are placed on.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    def GetCluster(
        self, request: v1.GetClusterRequest, *, timeout: float | None = None
    ) -> v1.GetClusterResponse:
        """Returns one cluster.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist.
        """
    def ListClusters(
        self, request: v1.ListClustersRequest, *, timeout: float | None = None
    ) -> v1.ListClustersResponse:
        """Returns all clusters, ordered by name."""
    def CordonCluster(
        self, request: v1.CordonClusterRequest, *, timeout: float | None = None
    ) -> v1.CordonClusterResponse:
        """Stops admitting gangs to the cluster. Gangs that are there continue to run. Repeating the call
        changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist.
        """
    def UncordonCluster(
        self, request: v1.UncordonClusterRequest, *, timeout: float | None = None
    ) -> v1.UncordonClusterResponse:
        """Admits gangs to the cluster again. Repeating the call changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist.
        """
    def GetCapacity(
        self, request: v1.GetCapacityRequest, *, timeout: float | None = None
    ) -> v1.GetCapacityResponse:
        """Returns nodes of one cluster, or of all clusters that the caller may see, as last observed: what
        they have, how much of it is held and by which jobs, and why a node takes no pods. What is held is
        what pods request, not what they use.

        NOT_FOUND (CLUSTER_NOT_FOUND): the named cluster does not exist.
        """
    def RegisterCluster(
        self, request: v1.RegisterClusterRequest, *, timeout: float | None = None
    ) -> v1.RegisterClusterResponse:
        """Registers a cluster. Gangs are placed on it once its nodes have been listed. The cluster is also
        registered if the check finds errors. From this call on, simulated clusters take no gangs, unless
        the server was told to keep them; they go away once their gangs have ended.

        INVALID_ARGUMENT: fields are wrong, the kubeconfig is refused, or a Secret that should hold it
        cannot be read. NOT_FOUND (CLUSTER_NOT_FOUND): the cluster of that Secret is not registered.
        ALREADY_EXISTS: a cluster has the name (CLUSTER_EXISTS), or the same Kubernetes cluster is
        registered under another name (SAME_CLUSTER). FAILED_PRECONDITION (NO_CREDENTIALS_KEY): the server
        has no key to encrypt the credentials with. RESOURCE_EXHAUSTED (TOO_MANY_POOLS): its flavors would
        be more pools than the service may have.
        """
    def UpdateCluster(
        self, request: v1.UpdateClusterRequest, *, timeout: float | None = None
    ) -> v1.UpdateClusterResponse:
        """Replaces labels and flavors; replaces the levels, the gang scheduler and the credentials if they are
        set. New credentials must lead to the same Kubernetes cluster; they are also stored if the check
        finds errors.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist, or that of a Secret with its kubeconfig.
        ABORTED (STALE_RESOURCE_VERSION): it has another version than resource_version. INVALID_ARGUMENT:
        fields are wrong, the kubeconfig is refused, or a Secret that should hold it cannot be read.
        FAILED_PRECONDITION: the server simulates the cluster (CLUSTER_IN_USE), has no key to encrypt
        credentials with (NO_CREDENTIALS_KEY), or the credentials lead to another Kubernetes cluster than
        the registered one (OTHER_CLUSTER). ALREADY_EXISTS (SAME_CLUSTER): they lead to a Kubernetes cluster
        that is registered under another name. RESOURCE_EXHAUSTED (TOO_MANY_POOLS): its flavors would be
        more pools than the service may have.
        """
    def CheckCluster(
        self, request: v1.CheckClusterRequest, *, timeout: float | None = None
    ) -> v1.CheckClusterResponse:
        """Checks version, clock, permissions, gang scheduler and webhooks of other queueing systems, by asking
        the cluster. Problems of the cluster are findings, not errors.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist, or the server has no credentials for it.
        """
    def DeleteCluster(
        self, request: v1.DeleteClusterRequest, *, timeout: float | None = None
    ) -> v1.DeleteClusterResponse:
        """Deletes a cluster that no gang is placed on. With `forget`, deletes one that is gone for good. A
        simulated cluster that was deleted does not come back when the server starts again.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist. FAILED_PRECONDITION (CLUSTER_IN_USE):
        gangs are placed on it; on a simulated cluster, only gangs that have not ended count.
        """
    def DeclareClusterLost(
        self, request: v1.DeclareClusterLostRequest, *, timeout: float | None = None
    ) -> v1.DeclareClusterLostResponse:
        """Counts a cluster that does not answer as lost, without waiting until the service does so by itself:
        gangs of which no pod was seen running there go elsewhere. It is lost no more as soon as it answers.
        Repeating the call changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist. INVALID_ARGUMENT: `confirm` is not the
        cluster's name. FAILED_PRECONDITION (CLUSTER_ANSWERS): it answers.
        """
    def AdoptCluster(
        self, request: v1.AdoptClusterRequest, *, timeout: float | None = None
    ) -> v1.AdoptClusterResponse:
        """Lets objects be deleted that the cluster has and the records do not know, after the database was
        restored from a back-up: jobs of after the back-up, and admissions that were recorded after it.
        Until every cluster is adopted, no gang is admitted, and jobs with such objects are left as they
        are. Repeating the call changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist. UNAVAILABLE (CLUSTER_UNREACHABLE): a dry
        run needs the cluster, and it does not answer.
        """
    def ListCredentialKeys(
        self, request: v1.ListCredentialKeysRequest, *, timeout: float | None = None
    ) -> v1.ListCredentialKeysResponse:
        """Returns the keys that encrypt the credentials of clusters, ordered by name: those that the server
        has, and those that stored credentials need. No answer has the key itself.
        """
    def RotateCredentialKeys(
        self, request: v1.RotateCredentialKeysRequest, *, timeout: float | None = None
    ) -> v1.RotateCredentialKeysResponse:
        """Encrypts all stored credentials again with the server's current key, in small transactions, while
        clusters are in use. Repeating the call changes nothing, and continues a call that was interrupted.
        Credentials that do not decrypt stay as they are, and the answer names them.

        FAILED_PRECONDITION: the server has no key (NO_CREDENTIALS_KEY), or its current key is not `to`
        (OTHER_CREDENTIALS_KEY).
        """

class AsyncClusterService:
    """Registers and shows the Kubernetes clusters that gangs are placed on.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    async def GetCluster(
        self, request: v1.GetClusterRequest, *, timeout: float | None = None
    ) -> v1.GetClusterResponse:
        """Returns one cluster.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist.
        """
    async def ListClusters(
        self, request: v1.ListClustersRequest, *, timeout: float | None = None
    ) -> v1.ListClustersResponse:
        """Returns all clusters, ordered by name."""
    async def CordonCluster(
        self, request: v1.CordonClusterRequest, *, timeout: float | None = None
    ) -> v1.CordonClusterResponse:
        """Stops admitting gangs to the cluster. Gangs that are there continue to run. Repeating the call
        changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist.
        """
    async def UncordonCluster(
        self, request: v1.UncordonClusterRequest, *, timeout: float | None = None
    ) -> v1.UncordonClusterResponse:
        """Admits gangs to the cluster again. Repeating the call changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist.
        """
    async def GetCapacity(
        self, request: v1.GetCapacityRequest, *, timeout: float | None = None
    ) -> v1.GetCapacityResponse:
        """Returns nodes of one cluster, or of all clusters that the caller may see, as last observed: what
        they have, how much of it is held and by which jobs, and why a node takes no pods. What is held is
        what pods request, not what they use.

        NOT_FOUND (CLUSTER_NOT_FOUND): the named cluster does not exist.
        """
    async def RegisterCluster(
        self, request: v1.RegisterClusterRequest, *, timeout: float | None = None
    ) -> v1.RegisterClusterResponse:
        """Registers a cluster. Gangs are placed on it once its nodes have been listed. The cluster is also
        registered if the check finds errors. From this call on, simulated clusters take no gangs, unless
        the server was told to keep them; they go away once their gangs have ended.

        INVALID_ARGUMENT: fields are wrong, the kubeconfig is refused, or a Secret that should hold it
        cannot be read. NOT_FOUND (CLUSTER_NOT_FOUND): the cluster of that Secret is not registered.
        ALREADY_EXISTS: a cluster has the name (CLUSTER_EXISTS), or the same Kubernetes cluster is
        registered under another name (SAME_CLUSTER). FAILED_PRECONDITION (NO_CREDENTIALS_KEY): the server
        has no key to encrypt the credentials with. RESOURCE_EXHAUSTED (TOO_MANY_POOLS): its flavors would
        be more pools than the service may have.
        """
    async def UpdateCluster(
        self, request: v1.UpdateClusterRequest, *, timeout: float | None = None
    ) -> v1.UpdateClusterResponse:
        """Replaces labels and flavors; replaces the levels, the gang scheduler and the credentials if they are
        set. New credentials must lead to the same Kubernetes cluster; they are also stored if the check
        finds errors.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist, or that of a Secret with its kubeconfig.
        ABORTED (STALE_RESOURCE_VERSION): it has another version than resource_version. INVALID_ARGUMENT:
        fields are wrong, the kubeconfig is refused, or a Secret that should hold it cannot be read.
        FAILED_PRECONDITION: the server simulates the cluster (CLUSTER_IN_USE), has no key to encrypt
        credentials with (NO_CREDENTIALS_KEY), or the credentials lead to another Kubernetes cluster than
        the registered one (OTHER_CLUSTER). ALREADY_EXISTS (SAME_CLUSTER): they lead to a Kubernetes cluster
        that is registered under another name. RESOURCE_EXHAUSTED (TOO_MANY_POOLS): its flavors would be
        more pools than the service may have.
        """
    async def CheckCluster(
        self, request: v1.CheckClusterRequest, *, timeout: float | None = None
    ) -> v1.CheckClusterResponse:
        """Checks version, clock, permissions, gang scheduler and webhooks of other queueing systems, by asking
        the cluster. Problems of the cluster are findings, not errors.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist, or the server has no credentials for it.
        """
    async def DeleteCluster(
        self, request: v1.DeleteClusterRequest, *, timeout: float | None = None
    ) -> v1.DeleteClusterResponse:
        """Deletes a cluster that no gang is placed on. With `forget`, deletes one that is gone for good. A
        simulated cluster that was deleted does not come back when the server starts again.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist. FAILED_PRECONDITION (CLUSTER_IN_USE):
        gangs are placed on it; on a simulated cluster, only gangs that have not ended count.
        """
    async def DeclareClusterLost(
        self, request: v1.DeclareClusterLostRequest, *, timeout: float | None = None
    ) -> v1.DeclareClusterLostResponse:
        """Counts a cluster that does not answer as lost, without waiting until the service does so by itself:
        gangs of which no pod was seen running there go elsewhere. It is lost no more as soon as it answers.
        Repeating the call changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist. INVALID_ARGUMENT: `confirm` is not the
        cluster's name. FAILED_PRECONDITION (CLUSTER_ANSWERS): it answers.
        """
    async def AdoptCluster(
        self, request: v1.AdoptClusterRequest, *, timeout: float | None = None
    ) -> v1.AdoptClusterResponse:
        """Lets objects be deleted that the cluster has and the records do not know, after the database was
        restored from a back-up: jobs of after the back-up, and admissions that were recorded after it.
        Until every cluster is adopted, no gang is admitted, and jobs with such objects are left as they
        are. Repeating the call changes nothing.

        NOT_FOUND (CLUSTER_NOT_FOUND): the cluster does not exist. UNAVAILABLE (CLUSTER_UNREACHABLE): a dry
        run needs the cluster, and it does not answer.
        """
    async def ListCredentialKeys(
        self, request: v1.ListCredentialKeysRequest, *, timeout: float | None = None
    ) -> v1.ListCredentialKeysResponse:
        """Returns the keys that encrypt the credentials of clusters, ordered by name: those that the server
        has, and those that stored credentials need. No answer has the key itself.
        """
    async def RotateCredentialKeys(
        self, request: v1.RotateCredentialKeysRequest, *, timeout: float | None = None
    ) -> v1.RotateCredentialKeysResponse:
        """Encrypts all stored credentials again with the server's current key, in small transactions, while
        clusters are in use. Repeating the call changes nothing, and continues a call that was interrupted.
        Credentials that do not decrypt stay as they are, and the answer names them.

        FAILED_PRECONDITION: the server has no key (NO_CREDENTIALS_KEY), or its current key is not `to`
        (OTHER_CREDENTIALS_KEY).
        """

class JobService:
    """Creates, changes, ends and observes distributed training jobs.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong. Any call may answer UNAVAILABLE while the database
    is away or overloaded, or while the server stops; RetryInfo then says when to repeat it. INTERNAL quotes
    a reference that is also in the server's log.
    """
    def CreateJob(
        self, request: v1.CreateJobRequest, *, timeout: float | None = None
    ) -> v1.CreateJobResponse:
        """Creates a job. Once the call has returned, the job is durable; it is admitted as a gang when its
        queue and a cluster have room. With a request_id, repeating the call creates nothing more.

        INVALID_ARGUMENT: fields are wrong. NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist.
        ALREADY_EXISTS: another job has the name (JOB_NAME_TAKEN), the request id was used for another job
        (REQUEST_ID_REUSED) or for one that was deleted since (JOB_MADE_AND_DELETED), or a job of this name
        is being deleted (JOB_BEING_DELETED, with RetryInfo). RESOURCE_EXHAUSTED (TOO_MANY_NAMESPACES): the
        job would create its namespace, and there are as many as the server allows. RESOURCE_EXHAUSTED
        (TOO_MANY_WAITING_JOBS, with RetryInfo): as many jobs of its queue, namespace or project wait as
        max_waiting_jobs allows. RESOURCE_EXHAUSTED (TOO_MANY_PODS, TOO_MANY_TEMPLATE_BYTES, with
        RetryInfo): the job is beyond a limit of its namespace or project.
        """
    def BatchCreateJobs(
        self, request: v1.BatchCreateJobsRequest, *, timeout: float | None = None
    ) -> v1.BatchCreateJobsResponse:
        """Creates up to 1,000 jobs. Each request succeeds or fails independently and has its own result. Of
        the jobs with one priority, the planner takes those of earlier requests first.

        INVALID_ARGUMENT: no request, or more than 1,000. RESOURCE_EXHAUSTED: the message is larger than 16
        MiB.
        """
    def GetJob(
        self, request: v1.GetJobRequest, *, timeout: float | None = None
    ) -> v1.GetJobResponse:
        """Returns one job, by namespace and name or by uid. View FULL also has the last lines of its
        containers that failed, if the caller may read the logs of the job.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist.
        """
    def ListJobs(
        self, request: v1.ListJobsRequest, *, timeout: float | None = None
    ) -> v1.ListJobsResponse:
        """Returns jobs in pages.

        INVALID_ARGUMENT: the page token is not one that this list returned for this order, or the order
        needs a filter that is not set.
        """
    def CountJobs(
        self, request: v1.CountJobsRequest, *, timeout: float | None = None
    ) -> v1.CountJobsResponse:
        """Counts the jobs that pass the filter, in groups. Jobs that have ended count only if the filter names
        one of their phases or sets ended_since; of these, the 10,000 that ended last, within 7 days.

        INVALID_ARGUMENT: group_by names a property twice, or more than two.
        """
    def WatchJobs(
        self, request: v1.WatchJobsRequest, *, timeout: float | None = None
    ) -> Iterator[v1.WatchJobsResponse]:
        """Streams every job that passes the filter as ADDED, then a BOOKMARK, then every change as it happens.
        The stream has no end. To resume it, call again with the last non-empty cursor.

        INVALID_ARGUMENT: the cursor is not one that a watch returned, or the filter sets queue_subtree,
        reasons, flavor or node, which the event log does not have. RESOURCE_EXHAUSTED (WATCH_TOO_SLOW): the
        client reads too slowly; ErrorInfo holds the cursor to resume from. RESOURCE_EXHAUSTED
        (STREAM_STALLED): the client has read nothing for a minute. UNAVAILABLE (SERVER_STOPPING): resume
        with the last cursor.
        """
    def UpdateJob(
        self, request: v1.UpdateJobRequest, *, timeout: float | None = None
    ) -> v1.UpdateJobResponse:
        """Changes a job's priority, numbers of replicas, suspension or labels, as the update mask names them.
        Applies all changes or none. Repeating the call changes nothing more.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist. ABORTED (STALE_RESOURCE_VERSION): the job has
        another version than metadata.resource_version. FAILED_PRECONDITION: the job has ended
        (JOB_TERMINAL), is being cancelled or deleted (JOB_ENDING), or is admitted and cannot change its
        number of replicas meanwhile (JOB_SIZE_FIXED). To set spec.run_policy.suspend to false also clears
        that a job was set aside; after three times within a day this needs the permission jobs.reinstate
        (JOB_SET_ASIDE).
        """
    def CancelJob(
        self, request: v1.CancelJobRequest, *, timeout: float | None = None
    ) -> v1.CancelJobResponse:
        """Ends a job and keeps its record. Returns at once; the job's pods are removed afterwards. Repeating
        the call succeeds.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist. FAILED_PRECONDITION (JOB_TERMINAL): the job had
        already ended.
        """
    def DeleteJob(
        self, request: v1.DeleteJobRequest, *, timeout: float | None = None
    ) -> v1.DeleteJobResponse:
        """Ends a job in any phase, removes all its objects from its clusters, then its record. Returns at
        once. Repeating the call succeeds until the record is gone.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist.
        """
    def ExplainJob(
        self, request: v1.ExplainJobRequest, *, timeout: float | None = None
    ) -> v1.ExplainJobResponse:
        """Explains in one sentence and in detail why a job waits, where it runs or why it failed.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist.
        """
    def SimulateJob(
        self, request: v1.SimulateJobRequest, *, timeout: float | None = None
    ) -> v1.SimulateJobResponse:
        """Says whether a job could run, now or later, and on which clusters. Changes nothing. Judges the job
        as if it were submitted now and not suspended. A waiting job of its name does not count. Of the
        other waiting jobs, the first 100 of its queue are judged together with it.

        INVALID_ARGUMENT: fields are wrong, as for CreateJob. NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace
        does not exist.
        """
    def ListJobEvents(
        self, request: v1.ListJobEventsRequest, *, timeout: float | None = None
    ) -> v1.ListJobEventsResponse:
        """Returns the events of all jobs that have had a name, oldest first, in pages. Events of deleted jobs
        are kept for as long as the event log.

        NOT_FOUND (JOB_NOT_FOUND): no job or event of this name exists. INVALID_ARGUMENT: the page token is
        not one that this list returned.
        """
    def ListJobPods(
        self, request: v1.ListJobPodsRequest, *, timeout: float | None = None
    ) -> v1.ListJobPodsResponse:
        """Returns the pods of a job's current admission as their cluster reports them now, by replica type and
        index, in pages. A replica without a pod is listed too. A job that waits has no pods; pods of its
        former admission that are still being deleted are listed. If the cluster does not answer, returns
        what was recorded last, and says so.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist. INVALID_ARGUMENT: the page token is not one that
        this list returned.
        """
    def StreamJobLogs(
        self, request: v1.StreamJobLogsRequest, *, timeout: float | None = None
    ) -> Iterator[v1.StreamJobLogsResponse]:
        """Streams the logs of a job's containers, read from its cluster. With `follow`, the stream continues
        across restarts of pods until the job has ended. Without it, replicas that have no log are skipped
        unless none has one. For a replica whose pod is gone or has no log, the last lines that were kept
        when its containers failed are returned; with `follow`, once the job has ended.

        NOT_FOUND: the job (JOB_NOT_FOUND) or the replica (REPLICA_NOT_FOUND) does not exist.
        INVALID_ARGUMENT: the container does not exist, or more than 100 replicas are to be followed.
        FAILED_PRECONDITION: the container has not started (NOT_STARTED; a stream that follows waits
        instead), the pods were removed (PODS_GONE), no lines of the attempt are kept (NO_KEPT_LOG), the
        cluster has no log of it (NO_LOG) or refuses to return it (CLUSTER_REFUSED). UNAVAILABLE: the
        cluster does not answer (CLUSTER_UNAVAILABLE) or the log broke off (LOG_BROKEN_OFF).
        RESOURCE_EXHAUSTED with RetryInfo: clients follow 256 logs of this server already
        (TOO_MANY_FOLLOWED_LOGS; a log can still be read without `follow`), or the client has read nothing
        for a minute (STREAM_STALLED).
        """
    def ListKinds(
        self, request: v1.ListKindsRequest, *, timeout: float | None = None
    ) -> v1.ListKindsResponse:
        """Returns the kinds of jobs that the server serves, with their roles, defaults, schemas and examples."""

class AsyncJobService:
    """Creates, changes, ends and observes distributed training jobs.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong. Any call may answer UNAVAILABLE while the database
    is away or overloaded, or while the server stops; RetryInfo then says when to repeat it. INTERNAL quotes
    a reference that is also in the server's log.
    """
    async def CreateJob(
        self, request: v1.CreateJobRequest, *, timeout: float | None = None
    ) -> v1.CreateJobResponse:
        """Creates a job. Once the call has returned, the job is durable; it is admitted as a gang when its
        queue and a cluster have room. With a request_id, repeating the call creates nothing more.

        INVALID_ARGUMENT: fields are wrong. NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist.
        ALREADY_EXISTS: another job has the name (JOB_NAME_TAKEN), the request id was used for another job
        (REQUEST_ID_REUSED) or for one that was deleted since (JOB_MADE_AND_DELETED), or a job of this name
        is being deleted (JOB_BEING_DELETED, with RetryInfo). RESOURCE_EXHAUSTED (TOO_MANY_NAMESPACES): the
        job would create its namespace, and there are as many as the server allows. RESOURCE_EXHAUSTED
        (TOO_MANY_WAITING_JOBS, with RetryInfo): as many jobs of its queue, namespace or project wait as
        max_waiting_jobs allows. RESOURCE_EXHAUSTED (TOO_MANY_PODS, TOO_MANY_TEMPLATE_BYTES, with
        RetryInfo): the job is beyond a limit of its namespace or project.
        """
    async def BatchCreateJobs(
        self, request: v1.BatchCreateJobsRequest, *, timeout: float | None = None
    ) -> v1.BatchCreateJobsResponse:
        """Creates up to 1,000 jobs. Each request succeeds or fails independently and has its own result. Of
        the jobs with one priority, the planner takes those of earlier requests first.

        INVALID_ARGUMENT: no request, or more than 1,000. RESOURCE_EXHAUSTED: the message is larger than 16
        MiB.
        """
    async def GetJob(
        self, request: v1.GetJobRequest, *, timeout: float | None = None
    ) -> v1.GetJobResponse:
        """Returns one job, by namespace and name or by uid. View FULL also has the last lines of its
        containers that failed, if the caller may read the logs of the job.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist.
        """
    async def ListJobs(
        self, request: v1.ListJobsRequest, *, timeout: float | None = None
    ) -> v1.ListJobsResponse:
        """Returns jobs in pages.

        INVALID_ARGUMENT: the page token is not one that this list returned for this order, or the order
        needs a filter that is not set.
        """
    async def CountJobs(
        self, request: v1.CountJobsRequest, *, timeout: float | None = None
    ) -> v1.CountJobsResponse:
        """Counts the jobs that pass the filter, in groups. Jobs that have ended count only if the filter names
        one of their phases or sets ended_since; of these, the 10,000 that ended last, within 7 days.

        INVALID_ARGUMENT: group_by names a property twice, or more than two.
        """
    def WatchJobs(
        self, request: v1.WatchJobsRequest, *, timeout: float | None = None
    ) -> AsyncIterator[v1.WatchJobsResponse]:
        """Streams every job that passes the filter as ADDED, then a BOOKMARK, then every change as it happens.
        The stream has no end. To resume it, call again with the last non-empty cursor.

        INVALID_ARGUMENT: the cursor is not one that a watch returned, or the filter sets queue_subtree,
        reasons, flavor or node, which the event log does not have. RESOURCE_EXHAUSTED (WATCH_TOO_SLOW): the
        client reads too slowly; ErrorInfo holds the cursor to resume from. RESOURCE_EXHAUSTED
        (STREAM_STALLED): the client has read nothing for a minute. UNAVAILABLE (SERVER_STOPPING): resume
        with the last cursor.
        """
    async def UpdateJob(
        self, request: v1.UpdateJobRequest, *, timeout: float | None = None
    ) -> v1.UpdateJobResponse:
        """Changes a job's priority, numbers of replicas, suspension or labels, as the update mask names them.
        Applies all changes or none. Repeating the call changes nothing more.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist. ABORTED (STALE_RESOURCE_VERSION): the job has
        another version than metadata.resource_version. FAILED_PRECONDITION: the job has ended
        (JOB_TERMINAL), is being cancelled or deleted (JOB_ENDING), or is admitted and cannot change its
        number of replicas meanwhile (JOB_SIZE_FIXED). To set spec.run_policy.suspend to false also clears
        that a job was set aside; after three times within a day this needs the permission jobs.reinstate
        (JOB_SET_ASIDE).
        """
    async def CancelJob(
        self, request: v1.CancelJobRequest, *, timeout: float | None = None
    ) -> v1.CancelJobResponse:
        """Ends a job and keeps its record. Returns at once; the job's pods are removed afterwards. Repeating
        the call succeeds.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist. FAILED_PRECONDITION (JOB_TERMINAL): the job had
        already ended.
        """
    async def DeleteJob(
        self, request: v1.DeleteJobRequest, *, timeout: float | None = None
    ) -> v1.DeleteJobResponse:
        """Ends a job in any phase, removes all its objects from its clusters, then its record. Returns at
        once. Repeating the call succeeds until the record is gone.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist.
        """
    async def ExplainJob(
        self, request: v1.ExplainJobRequest, *, timeout: float | None = None
    ) -> v1.ExplainJobResponse:
        """Explains in one sentence and in detail why a job waits, where it runs or why it failed.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist.
        """
    async def SimulateJob(
        self, request: v1.SimulateJobRequest, *, timeout: float | None = None
    ) -> v1.SimulateJobResponse:
        """Says whether a job could run, now or later, and on which clusters. Changes nothing. Judges the job
        as if it were submitted now and not suspended. A waiting job of its name does not count. Of the
        other waiting jobs, the first 100 of its queue are judged together with it.

        INVALID_ARGUMENT: fields are wrong, as for CreateJob. NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace
        does not exist.
        """
    async def ListJobEvents(
        self, request: v1.ListJobEventsRequest, *, timeout: float | None = None
    ) -> v1.ListJobEventsResponse:
        """Returns the events of all jobs that have had a name, oldest first, in pages. Events of deleted jobs
        are kept for as long as the event log.

        NOT_FOUND (JOB_NOT_FOUND): no job or event of this name exists. INVALID_ARGUMENT: the page token is
        not one that this list returned.
        """
    async def ListJobPods(
        self, request: v1.ListJobPodsRequest, *, timeout: float | None = None
    ) -> v1.ListJobPodsResponse:
        """Returns the pods of a job's current admission as their cluster reports them now, by replica type and
        index, in pages. A replica without a pod is listed too. A job that waits has no pods; pods of its
        former admission that are still being deleted are listed. If the cluster does not answer, returns
        what was recorded last, and says so.

        NOT_FOUND (JOB_NOT_FOUND): the job does not exist. INVALID_ARGUMENT: the page token is not one that
        this list returned.
        """
    def StreamJobLogs(
        self, request: v1.StreamJobLogsRequest, *, timeout: float | None = None
    ) -> AsyncIterator[v1.StreamJobLogsResponse]:
        """Streams the logs of a job's containers, read from its cluster. With `follow`, the stream continues
        across restarts of pods until the job has ended. Without it, replicas that have no log are skipped
        unless none has one. For a replica whose pod is gone or has no log, the last lines that were kept
        when its containers failed are returned; with `follow`, once the job has ended.

        NOT_FOUND: the job (JOB_NOT_FOUND) or the replica (REPLICA_NOT_FOUND) does not exist.
        INVALID_ARGUMENT: the container does not exist, or more than 100 replicas are to be followed.
        FAILED_PRECONDITION: the container has not started (NOT_STARTED; a stream that follows waits
        instead), the pods were removed (PODS_GONE), no lines of the attempt are kept (NO_KEPT_LOG), the
        cluster has no log of it (NO_LOG) or refuses to return it (CLUSTER_REFUSED). UNAVAILABLE: the
        cluster does not answer (CLUSTER_UNAVAILABLE) or the log broke off (LOG_BROKEN_OFF).
        RESOURCE_EXHAUSTED with RetryInfo: clients follow 256 logs of this server already
        (TOO_MANY_FOLLOWED_LOGS; a log can still be read without `follow`), or the client has read nothing
        for a minute (STREAM_STALLED).
        """
    async def ListKinds(
        self, request: v1.ListKindsRequest, *, timeout: float | None = None
    ) -> v1.ListKindsResponse:
        """Returns the kinds of jobs that the server serves, with their roles, defaults, schemas and examples."""

class NamespaceService:
    """Administers the namespaces that jobs are created in. If the server allows it, the first job that names a
    namespace also creates it.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    def CreateNamespace(
        self, request: v1.CreateNamespaceRequest, *, timeout: float | None = None
    ) -> v1.CreateNamespaceResponse:
        """Creates a namespace.

        ALREADY_EXISTS (NAMESPACE_EXISTS): a namespace has the name. INVALID_ARGUMENT: fields are wrong, the
        default queue does not exist, or the namespace is reserved: no job may run in namespaces of
        Kubernetes (`kube-…`) or of Gangway itself (GANGWAY_RESERVED_NAMESPACES). RESOURCE_EXHAUSTED
        (TOO_MANY_NAMESPACES): there are as many as the server allows.
        """
    def GetNamespace(
        self, request: v1.GetNamespaceRequest, *, timeout: float | None = None
    ) -> v1.GetNamespaceResponse:
        """Returns one namespace.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist.
        """
    def ListNamespaces(
        self, request: v1.ListNamespacesRequest, *, timeout: float | None = None
    ) -> v1.ListNamespacesResponse:
        """Returns all namespaces, ordered by name."""
    def UpdateNamespace(
        self, request: v1.UpdateNamespaceRequest, *, timeout: float | None = None
    ) -> v1.UpdateNamespaceResponse:
        """Replaces project, default queue and, if they are given, the pod policy, keep_failure_logs and
        on_cluster_lost. Jobs that exist keep the project and the queue that they were created with. A new
        pod policy judges jobs that are created from then on, and jobs that UpdateJob makes larger, resumes,
        or gives a higher priority. Jobs that were accepted before keep running, and are admitted as they
        are.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist. ABORTED (STALE_RESOURCE_VERSION): it
        has another version than resource_version. INVALID_ARGUMENT: fields are wrong, or the default queue
        does not exist.
        """
    def DeleteNamespace(
        self, request: v1.DeleteNamespaceRequest, *, timeout: float | None = None
    ) -> v1.DeleteNamespaceResponse:
        """Deletes a namespace.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist. FAILED_PRECONDITION
        (NAMESPACE_IN_USE): it has jobs, ended ones included, or robots whose tokens count.
        """
    def SetTenantLimits(
        self, request: v1.SetTenantLimitsRequest, *, timeout: float | None = None
    ) -> v1.SetTenantLimitsResponse:
        """Replaces the limits of a namespace or a project. Without any limit, removes them. A limit that is
        below what is used ends nothing: it refuses what comes later. Recorded in the audit log.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist. A project need not have a namespace.
        """
    def ListTenantLimits(
        self, request: v1.ListTenantLimitsRequest, *, timeout: float | None = None
    ) -> v1.ListTenantLimitsResponse:
        """Returns the namespaces and projects that have limits, with what they use: first namespaces, each
        kind ordered by name.
        """

class AsyncNamespaceService:
    """Administers the namespaces that jobs are created in. If the server allows it, the first job that names a
    namespace also creates it.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    async def CreateNamespace(
        self, request: v1.CreateNamespaceRequest, *, timeout: float | None = None
    ) -> v1.CreateNamespaceResponse:
        """Creates a namespace.

        ALREADY_EXISTS (NAMESPACE_EXISTS): a namespace has the name. INVALID_ARGUMENT: fields are wrong, the
        default queue does not exist, or the namespace is reserved: no job may run in namespaces of
        Kubernetes (`kube-…`) or of Gangway itself (GANGWAY_RESERVED_NAMESPACES). RESOURCE_EXHAUSTED
        (TOO_MANY_NAMESPACES): there are as many as the server allows.
        """
    async def GetNamespace(
        self, request: v1.GetNamespaceRequest, *, timeout: float | None = None
    ) -> v1.GetNamespaceResponse:
        """Returns one namespace.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist.
        """
    async def ListNamespaces(
        self, request: v1.ListNamespacesRequest, *, timeout: float | None = None
    ) -> v1.ListNamespacesResponse:
        """Returns all namespaces, ordered by name."""
    async def UpdateNamespace(
        self, request: v1.UpdateNamespaceRequest, *, timeout: float | None = None
    ) -> v1.UpdateNamespaceResponse:
        """Replaces project, default queue and, if they are given, the pod policy, keep_failure_logs and
        on_cluster_lost. Jobs that exist keep the project and the queue that they were created with. A new
        pod policy judges jobs that are created from then on, and jobs that UpdateJob makes larger, resumes,
        or gives a higher priority. Jobs that were accepted before keep running, and are admitted as they
        are.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist. ABORTED (STALE_RESOURCE_VERSION): it
        has another version than resource_version. INVALID_ARGUMENT: fields are wrong, or the default queue
        does not exist.
        """
    async def DeleteNamespace(
        self, request: v1.DeleteNamespaceRequest, *, timeout: float | None = None
    ) -> v1.DeleteNamespaceResponse:
        """Deletes a namespace.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist. FAILED_PRECONDITION
        (NAMESPACE_IN_USE): it has jobs, ended ones included, or robots whose tokens count.
        """
    async def SetTenantLimits(
        self, request: v1.SetTenantLimitsRequest, *, timeout: float | None = None
    ) -> v1.SetTenantLimitsResponse:
        """Replaces the limits of a namespace or a project. Without any limit, removes them. A limit that is
        below what is used ends nothing: it refuses what comes later. Recorded in the audit log.

        NOT_FOUND (NAMESPACE_NOT_FOUND): the namespace does not exist. A project need not have a namespace.
        """
    async def ListTenantLimits(
        self, request: v1.ListTenantLimitsRequest, *, timeout: float | None = None
    ) -> v1.ListTenantLimitsResponse:
        """Returns the namespaces and projects that have limits, with what they use: first namespaces, each
        kind ordered by name.
        """

class PriorityClassService:
    """Administers priority classes: names for priorities of jobs, as in Kubernetes. A job copies the value and
    the preemption policy of its class when it is created or when UpdateJob changes its class. So a class
    can be deleted while jobs have it, and what is done to a class afterwards changes no job.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    def CreatePriorityClass(
        self, request: v1.CreatePriorityClassRequest, *, timeout: float | None = None
    ) -> v1.CreatePriorityClassResponse:
        """Creates a priority class.

        ALREADY_EXISTS (PRIORITY_CLASS_EXISTS): a class has the name. FAILED_PRECONDITION
        (DEFAULT_CLASS_EXISTS): another class is the default. RESOURCE_EXHAUSTED
        (TOO_MANY_PRIORITY_CLASSES): there are 1,000 classes.
        """
    def GetPriorityClass(
        self, request: v1.GetPriorityClassRequest, *, timeout: float | None = None
    ) -> v1.GetPriorityClassResponse:
        """Returns one priority class.

        NOT_FOUND (PRIORITY_CLASS_NOT_FOUND): the class does not exist.
        """
    def ListPriorityClasses(
        self, request: v1.ListPriorityClassesRequest, *, timeout: float | None = None
    ) -> v1.ListPriorityClassesResponse:
        """Returns all priority classes, the highest value first."""
    def UpdatePriorityClass(
        self, request: v1.UpdatePriorityClassRequest, *, timeout: float | None = None
    ) -> v1.UpdatePriorityClassResponse:
        """Replaces the description and global_default. The value and the preemption policy never change: make
        another class.

        NOT_FOUND (PRIORITY_CLASS_NOT_FOUND): the class does not exist. ABORTED (STALE_RESOURCE_VERSION): it
        has another version than resource_version. INVALID_ARGUMENT: the value or the preemption policy is
        another one. FAILED_PRECONDITION (DEFAULT_CLASS_EXISTS): another class is the default.
        """
    def DeletePriorityClass(
        self, request: v1.DeletePriorityClassRequest, *, timeout: float | None = None
    ) -> v1.DeletePriorityClassResponse:
        """Deletes a priority class. Jobs that have it keep its name, value and preemption policy.

        NOT_FOUND (PRIORITY_CLASS_NOT_FOUND): the class does not exist.
        """

class AsyncPriorityClassService:
    """Administers priority classes: names for priorities of jobs, as in Kubernetes. A job copies the value and
    the preemption policy of its class when it is created or when UpdateJob changes its class. So a class
    can be deleted while jobs have it, and what is done to a class afterwards changes no job.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    async def CreatePriorityClass(
        self, request: v1.CreatePriorityClassRequest, *, timeout: float | None = None
    ) -> v1.CreatePriorityClassResponse:
        """Creates a priority class.

        ALREADY_EXISTS (PRIORITY_CLASS_EXISTS): a class has the name. FAILED_PRECONDITION
        (DEFAULT_CLASS_EXISTS): another class is the default. RESOURCE_EXHAUSTED
        (TOO_MANY_PRIORITY_CLASSES): there are 1,000 classes.
        """
    async def GetPriorityClass(
        self, request: v1.GetPriorityClassRequest, *, timeout: float | None = None
    ) -> v1.GetPriorityClassResponse:
        """Returns one priority class.

        NOT_FOUND (PRIORITY_CLASS_NOT_FOUND): the class does not exist.
        """
    async def ListPriorityClasses(
        self, request: v1.ListPriorityClassesRequest, *, timeout: float | None = None
    ) -> v1.ListPriorityClassesResponse:
        """Returns all priority classes, the highest value first."""
    async def UpdatePriorityClass(
        self, request: v1.UpdatePriorityClassRequest, *, timeout: float | None = None
    ) -> v1.UpdatePriorityClassResponse:
        """Replaces the description and global_default. The value and the preemption policy never change: make
        another class.

        NOT_FOUND (PRIORITY_CLASS_NOT_FOUND): the class does not exist. ABORTED (STALE_RESOURCE_VERSION): it
        has another version than resource_version. INVALID_ARGUMENT: the value or the preemption policy is
        another one. FAILED_PRECONDITION (DEFAULT_CLASS_EXISTS): another class is the default.
        """
    async def DeletePriorityClass(
        self, request: v1.DeletePriorityClassRequest, *, timeout: float | None = None
    ) -> v1.DeletePriorityClassResponse:
        """Deletes a priority class. Jobs that have it keep its name, value and preemption policy.

        NOT_FOUND (PRIORITY_CLASS_NOT_FOUND): the class does not exist.
        """

class QueueService:
    """Administers the queues that share flavors among teams.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    def CreateQueue(
        self, request: v1.CreateQueueRequest, *, timeout: float | None = None
    ) -> v1.CreateQueueResponse:
        """Creates a queue. Flavors of its quotas become pools if no pool has their name.

        ALREADY_EXISTS (QUEUE_EXISTS): a queue has the name. INVALID_ARGUMENT: fields are wrong, or the
        queue cannot be below that parent. FAILED_PRECONDITION (QUEUE_APART): a flavor is a pool of another
        quota domain, or of durability REDIS. RESOURCE_EXHAUSTED (TOO_MANY_POOLS): its flavors would be more
        pools than the service may have.
        """
    def GetQueue(
        self, request: v1.GetQueueRequest, *, timeout: float | None = None
    ) -> v1.GetQueueResponse:
        """Returns one queue.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist.
        """
    def ListQueues(
        self, request: v1.ListQueuesRequest, *, timeout: float | None = None
    ) -> v1.ListQueuesResponse:
        """Returns all queues, ordered by name."""
    def UpdateQueue(
        self, request: v1.UpdateQueueRequest, *, timeout: float | None = None
    ) -> v1.UpdateQueueResponse:
        """Replaces all settings, so one that is omitted gets its default. Only the stop policy stays as it is
        if it is not set. A new limit takes no token away: while more is used than it allows, nothing new is
        granted. A stop policy binds before the call returns: no admission and no growth follows in a queue
        that is stopped.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. ABORTED (STALE_RESOURCE_VERSION): it has
        another version than resource_version. INVALID_ARGUMENT, FAILED_PRECONDITION and RESOURCE_EXHAUSTED
        as in CreateQueue.
        """
    def FreezeQueue(
        self, request: v1.FreezeQueueRequest, *, timeout: float | None = None
    ) -> v1.FreezeQueueResponse:
        """Freezes a queue and all queues below it: nothing more is granted to their jobs and to callers that
        charge them, and their jobs are neither preempted nor undone. Renewals and releases go on, and
        waiting jobs and requests keep their age. It binds before the call returns; an admission whose end
        was requested before is still undone. A queue that is frozen stays as it is. Recorded for
        ListAuditEntries.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist.
        """
    def UnfreezeQueue(
        self, request: v1.UnfreezeQueueRequest, *, timeout: float | None = None
    ) -> v1.UnfreezeQueueResponse:
        """Ends the freeze of a queue. Its stop policy is as it was before. A queue that is not frozen stays as
        it is. Recorded for ListAuditEntries.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist.
        """
    def GrantQuota(
        self, request: v1.GrantQuotaRequest, *, timeout: float | None = None
    ) -> v1.GrantQuotaResponse:
        """Raises the nominal quota of a queue for a pool until a time. Shares and what the queue may lend move
        with it. The end is durable, and needs no call: from then on what was used or lent beyond the quota
        counts as borrowed. A queue has one grant of a pool at most, and another call replaces it. The quota
        of the pool itself stays. Recorded for ListAuditEntries, as is the end.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. FAILED_PRECONDITION (NO_QUOTA): it has no
        quota of the pool. INVALID_ARGUMENT: the end is in the past or more than 366 days away, or the
        amount is too large.
        """
    def ListQuotaGrants(
        self, request: v1.ListQuotaGrantsRequest, *, timeout: float | None = None
    ) -> v1.ListQuotaGrantsResponse:
        """Returns the grants that have not ended, ordered by queue and pool."""
    def RevokeQuotaGrant(
        self, request: v1.RevokeQuotaGrantRequest, *, timeout: float | None = None
    ) -> v1.RevokeQuotaGrantResponse:
        """Ends a grant before its time. Recorded for ListAuditEntries.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. NOT_FOUND: it has no grant of the pool.
        """
    def DeleteQueue(
        self, request: v1.DeleteQueueRequest, *, timeout: float | None = None
    ) -> v1.DeleteQueueResponse:
        """Deletes a queue.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. FAILED_PRECONDITION (QUEUE_IN_USE): a job
        that has not ended, a namespace, a pool or a queue below names it, or tokens are charged to it.
        """
    def ListAuditEntries(
        self, request: v1.ListAuditEntriesRequest, *, timeout: float | None = None
    ) -> v1.ListAuditEntriesResponse:
        """Returns the record of changed queues, priority classes, pools, roles and bindings, forced releases,
        repaired counters, and calls that were refused for lack of a permission, newest first, in pages.

        INVALID_ARGUMENT: the page token is not one that this list returned.
        """

class AsyncQueueService:
    """Administers the queues that share flavors among teams.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    async def CreateQueue(
        self, request: v1.CreateQueueRequest, *, timeout: float | None = None
    ) -> v1.CreateQueueResponse:
        """Creates a queue. Flavors of its quotas become pools if no pool has their name.

        ALREADY_EXISTS (QUEUE_EXISTS): a queue has the name. INVALID_ARGUMENT: fields are wrong, or the
        queue cannot be below that parent. FAILED_PRECONDITION (QUEUE_APART): a flavor is a pool of another
        quota domain, or of durability REDIS. RESOURCE_EXHAUSTED (TOO_MANY_POOLS): its flavors would be more
        pools than the service may have.
        """
    async def GetQueue(
        self, request: v1.GetQueueRequest, *, timeout: float | None = None
    ) -> v1.GetQueueResponse:
        """Returns one queue.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist.
        """
    async def ListQueues(
        self, request: v1.ListQueuesRequest, *, timeout: float | None = None
    ) -> v1.ListQueuesResponse:
        """Returns all queues, ordered by name."""
    async def UpdateQueue(
        self, request: v1.UpdateQueueRequest, *, timeout: float | None = None
    ) -> v1.UpdateQueueResponse:
        """Replaces all settings, so one that is omitted gets its default. Only the stop policy stays as it is
        if it is not set. A new limit takes no token away: while more is used than it allows, nothing new is
        granted. A stop policy binds before the call returns: no admission and no growth follows in a queue
        that is stopped.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. ABORTED (STALE_RESOURCE_VERSION): it has
        another version than resource_version. INVALID_ARGUMENT, FAILED_PRECONDITION and RESOURCE_EXHAUSTED
        as in CreateQueue.
        """
    async def FreezeQueue(
        self, request: v1.FreezeQueueRequest, *, timeout: float | None = None
    ) -> v1.FreezeQueueResponse:
        """Freezes a queue and all queues below it: nothing more is granted to their jobs and to callers that
        charge them, and their jobs are neither preempted nor undone. Renewals and releases go on, and
        waiting jobs and requests keep their age. It binds before the call returns; an admission whose end
        was requested before is still undone. A queue that is frozen stays as it is. Recorded for
        ListAuditEntries.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist.
        """
    async def UnfreezeQueue(
        self, request: v1.UnfreezeQueueRequest, *, timeout: float | None = None
    ) -> v1.UnfreezeQueueResponse:
        """Ends the freeze of a queue. Its stop policy is as it was before. A queue that is not frozen stays as
        it is. Recorded for ListAuditEntries.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist.
        """
    async def GrantQuota(
        self, request: v1.GrantQuotaRequest, *, timeout: float | None = None
    ) -> v1.GrantQuotaResponse:
        """Raises the nominal quota of a queue for a pool until a time. Shares and what the queue may lend move
        with it. The end is durable, and needs no call: from then on what was used or lent beyond the quota
        counts as borrowed. A queue has one grant of a pool at most, and another call replaces it. The quota
        of the pool itself stays. Recorded for ListAuditEntries, as is the end.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. FAILED_PRECONDITION (NO_QUOTA): it has no
        quota of the pool. INVALID_ARGUMENT: the end is in the past or more than 366 days away, or the
        amount is too large.
        """
    async def ListQuotaGrants(
        self, request: v1.ListQuotaGrantsRequest, *, timeout: float | None = None
    ) -> v1.ListQuotaGrantsResponse:
        """Returns the grants that have not ended, ordered by queue and pool."""
    async def RevokeQuotaGrant(
        self, request: v1.RevokeQuotaGrantRequest, *, timeout: float | None = None
    ) -> v1.RevokeQuotaGrantResponse:
        """Ends a grant before its time. Recorded for ListAuditEntries.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. NOT_FOUND: it has no grant of the pool.
        """
    async def DeleteQueue(
        self, request: v1.DeleteQueueRequest, *, timeout: float | None = None
    ) -> v1.DeleteQueueResponse:
        """Deletes a queue.

        NOT_FOUND (QUEUE_NOT_FOUND): the queue does not exist. FAILED_PRECONDITION (QUEUE_IN_USE): a job
        that has not ended, a namespace, a pool or a queue below names it, or tokens are charged to it.
        """
    async def ListAuditEntries(
        self, request: v1.ListAuditEntriesRequest, *, timeout: float | None = None
    ) -> v1.ListAuditEntriesResponse:
        """Returns the record of changed queues, priority classes, pools, roles and bindings, forced releases,
        repaired counters, and calls that were refused for lack of a permission, newest first, in pages.

        INVALID_ARGUMENT: the page token is not one that this list returned.
        """

class ResourceManager:
    """Grants tokens of pools: GPUs of a flavor, concurrent queries of a warehouse, slots of anything that has
    a limit. The use of a pool never exceeds its quota, nor the limits of a project, namespace or queue
    within it. This holds for any number of callers and servers, while limits change, leases lapse and calls
    are repeated.

    A caller names each grant by an allocation token of its own, unique within the pool. Repeating a call is
    therefore safe, also after a lost answer. A grant is a lease: renew it with RenewAllocations before its
    expire_time, and release it when the work is done. For example:

      AllocateResource {resource_namespace: "ex:warehouse", allocation_token: "query-17"}
        returns GRANTED with a fence and an expire_time.
      RenewAllocations {lines: [...]} after every third of the lease, while the work runs.
        LOST: another caller may hold the room by now. Stop the work.
      ReleaseResource {resource_namespace: "ex:warehouse", allocation_token: "query-17"}
        returns RELEASED.

    A pool without room is not an error but a status of AllocateResource. Every error carries a
    google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT carries a BadRequest with
    every field that is wrong. NOT_FOUND: the pool (POOL_NOT_FOUND) or the queue (QUEUE_NOT_FOUND) does not
    exist. UNAVAILABLE with RetryInfo: a store is away or counters are being rebuilt (STORE_UNAVAILABLE), or
    another call takes or releases the same token at this moment (TOKEN_CONTENDED). The call may have taken
    effect, so repeat the same call.
    """
    def RegisterResourceQuota(
        self, request: v1.RegisterResourceQuotaRequest, *, timeout: float | None = None
    ) -> v1.RegisterResourceQuotaResponse:
        """Creates or changes a pool. Fields that are omitted keep their values, and have their defaults in a
        new pool. A new pool of which only name and quota are given is one of Flyte: its tokens are held
        until they are released. Repeating the call changes nothing more. A quota below the present use
        takes no token away: nothing new is granted until enough is released. Recorded for ListAuditEntries.

        ABORTED (STALE_RESOURCE_VERSION): the pool has another version. FAILED_PRECONDITION (DOMAIN_FIXED,
        DURABILITY_FIXED): domain and durability cannot change after the pool was created.
        RESOURCE_EXHAUSTED (TOO_MANY_POOLS): the service has as many pools as it may have.
        """
    def AllocateResource(
        self, request: v1.AllocateResourceRequest, *, timeout: float | None = None
    ) -> v1.AllocateResourceResponse:
        """Takes an amount of a pool, or returns the limit that is in the way. Never waits. If the holder
        already holds the token with this amount, the answer is GRANTED with the same fence, and nothing is
        charged.

        ALREADY_EXISTS (TOKEN_HELD_OTHERWISE): the token is held by another holder or with another amount.
        FAILED_PRECONDITION (QUEUE_APART): the queue is not counted in the pool's quota domain.
        RESOURCE_EXHAUSTED (TOO_MANY_TOKENS): the quota domain holds as many tokens as it may hold.
        """
    def ReleaseResource(
        self, request: v1.ReleaseResourceRequest, *, timeout: float | None = None
    ) -> v1.ReleaseResourceResponse:
        """Releases a token. A token that is not held is NOT_HELD, which is also a success.

        PERMISSION_DENIED (OTHER_HOLDER): another holder holds the token. FAILED_PRECONDITION (OTHER_SCOPE):
        the token is held under another project or namespace than the request names.
        """
    def BatchAllocateResources(
        self, request: v1.BatchAllocateResourcesRequest, *, timeout: float | None = None
    ) -> v1.BatchAllocateResourcesResponse:
        """Takes all allocations under one fence, or none.

        FAILED_PRECONDITION (POOLS_APART): the pools differ in quota domain or durability. Other errors as
        in AllocateResource.
        """
    def BatchReleaseResources(
        self, request: v1.BatchReleaseResourcesRequest, *, timeout: float | None = None
    ) -> v1.BatchReleaseResourcesResponse:
        """Releases up to 1,000 tokens. Each has its own outcome; none hinders another."""
    def RenewAllocations(
        self, request: v1.RenewAllocationsRequest, *, timeout: float | None = None
    ) -> v1.RenewAllocationsResponse:
        """Renews up to 1,000 leases. Each has its own outcome. LOST is final: the token has lapsed or was
        released, and the work that it allowed must stop. While a server, a store or the network is away,
        the call is UNAVAILABLE and no lease lapses; it never answers LOST for that reason.
        """
    def WaitForResource(
        self, request: v1.WaitForResourceRequest, *, timeout: float | None = None
    ) -> Iterator[v1.WaitForResourceResponse]:
        """Takes an amount of a pool, and waits for it in the pool's waiting line, ordered by priority, then by
        age. The stream sends the position in the waiting line and the limit that is in the way, again
        whenever these change, and at last the grant. Cancelling the call leaves the waiting line. A call
        that is repeated after UNAVAILABLE joins anew, behind requests of the same priority.

        FAILED_PRECONDITION (NEVER_FITS): a limit is lower than the amount. RESOURCE_EXHAUSTED (LINE_FULL):
        the waiting line has as many requests as it may have. Other errors as in AllocateResource.
        """
    def GetPool(
        self, request: v1.GetPoolRequest, *, timeout: float | None = None
    ) -> v1.GetPoolResponse:
        """Returns a pool and its use."""
    def ListPools(
        self, request: v1.ListPoolsRequest, *, timeout: float | None = None
    ) -> v1.ListPoolsResponse:
        """Returns pools ordered by name, in pages."""
    def DeletePool(
        self, request: v1.DeletePoolRequest, *, timeout: float | None = None
    ) -> v1.DeletePoolResponse:
        """Deletes a pool that nothing uses. A pool of the same name may be registered again, and starts empty.
        Tokens that a caller asks for while the pool is deleted are granted before, or not at all. Recorded
        for ListAuditEntries.

        FAILED_PRECONDITION (POOL_IN_USE): tokens of the pool are held, requests wait for some, or a queue
        or a cluster has a flavor of its name.
        """
    def FreezePool(
        self, request: v1.FreezePoolRequest, *, timeout: float | None = None
    ) -> v1.FreezePoolResponse:
        """Freezes a pool: nothing more of it is granted to jobs and callers, and no job that uses it is
        preempted or undone. Renewals and releases go on, and what waits keeps its age. It binds before the
        call returns; an admission whose end was requested before is still undone. A pool that is frozen
        stays as it is. Recorded for ListAuditEntries.
        """
    def UnfreezePool(
        self, request: v1.UnfreezePoolRequest, *, timeout: float | None = None
    ) -> v1.UnfreezePoolResponse:
        """Ends the freeze of a pool. A pool that is not frozen stays as it is. Recorded for ListAuditEntries."""
    def ListAllocations(
        self, request: v1.ListAllocationsRequest, *, timeout: float | None = None
    ) -> v1.ListAllocationsResponse:
        """Returns tokens that are held, in pages: the oldest grants first, those of a pool of durability REDIS
        in any order.
        """
    def ForceRelease(
        self, request: v1.ForceReleaseRequest, *, timeout: float | None = None
    ) -> v1.ForceReleaseResponse:
        """Releases a token of any holder. The next renewal by that holder is LOST. Recorded with its reason
        for ListAuditEntries.

        FAILED_PRECONDITION (LIVE_ADMISSION): a job that is admitted holds the token. Cancel the job
        instead.
        """
    def ReconcileQuota(
        self, request: v1.ReconcileQuotaRequest, *, timeout: float | None = None
    ) -> v1.ReconcileQuotaResponse:
        """Compares the counters, the ledger and the holders, and repairs differences in favor of the ledger.
        While the counters of a quota domain are rebuilt, its grants return UNAVAILABLE for a moment.
        Repairs are recorded for ListAuditEntries.
        """

class AsyncResourceManager:
    """Grants tokens of pools: GPUs of a flavor, concurrent queries of a warehouse, slots of anything that has
    a limit. The use of a pool never exceeds its quota, nor the limits of a project, namespace or queue
    within it. This holds for any number of callers and servers, while limits change, leases lapse and calls
    are repeated.

    A caller names each grant by an allocation token of its own, unique within the pool. Repeating a call is
    therefore safe, also after a lost answer. A grant is a lease: renew it with RenewAllocations before its
    expire_time, and release it when the work is done. For example:

      AllocateResource {resource_namespace: "ex:warehouse", allocation_token: "query-17"}
        returns GRANTED with a fence and an expire_time.
      RenewAllocations {lines: [...]} after every third of the lease, while the work runs.
        LOST: another caller may hold the room by now. Stop the work.
      ReleaseResource {resource_namespace: "ex:warehouse", allocation_token: "query-17"}
        returns RELEASED.

    A pool without room is not an error but a status of AllocateResource. Every error carries a
    google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT carries a BadRequest with
    every field that is wrong. NOT_FOUND: the pool (POOL_NOT_FOUND) or the queue (QUEUE_NOT_FOUND) does not
    exist. UNAVAILABLE with RetryInfo: a store is away or counters are being rebuilt (STORE_UNAVAILABLE), or
    another call takes or releases the same token at this moment (TOKEN_CONTENDED). The call may have taken
    effect, so repeat the same call.
    """
    async def RegisterResourceQuota(
        self, request: v1.RegisterResourceQuotaRequest, *, timeout: float | None = None
    ) -> v1.RegisterResourceQuotaResponse:
        """Creates or changes a pool. Fields that are omitted keep their values, and have their defaults in a
        new pool. A new pool of which only name and quota are given is one of Flyte: its tokens are held
        until they are released. Repeating the call changes nothing more. A quota below the present use
        takes no token away: nothing new is granted until enough is released. Recorded for ListAuditEntries.

        ABORTED (STALE_RESOURCE_VERSION): the pool has another version. FAILED_PRECONDITION (DOMAIN_FIXED,
        DURABILITY_FIXED): domain and durability cannot change after the pool was created.
        RESOURCE_EXHAUSTED (TOO_MANY_POOLS): the service has as many pools as it may have.
        """
    async def AllocateResource(
        self, request: v1.AllocateResourceRequest, *, timeout: float | None = None
    ) -> v1.AllocateResourceResponse:
        """Takes an amount of a pool, or returns the limit that is in the way. Never waits. If the holder
        already holds the token with this amount, the answer is GRANTED with the same fence, and nothing is
        charged.

        ALREADY_EXISTS (TOKEN_HELD_OTHERWISE): the token is held by another holder or with another amount.
        FAILED_PRECONDITION (QUEUE_APART): the queue is not counted in the pool's quota domain.
        RESOURCE_EXHAUSTED (TOO_MANY_TOKENS): the quota domain holds as many tokens as it may hold.
        """
    async def ReleaseResource(
        self, request: v1.ReleaseResourceRequest, *, timeout: float | None = None
    ) -> v1.ReleaseResourceResponse:
        """Releases a token. A token that is not held is NOT_HELD, which is also a success.

        PERMISSION_DENIED (OTHER_HOLDER): another holder holds the token. FAILED_PRECONDITION (OTHER_SCOPE):
        the token is held under another project or namespace than the request names.
        """
    async def BatchAllocateResources(
        self, request: v1.BatchAllocateResourcesRequest, *, timeout: float | None = None
    ) -> v1.BatchAllocateResourcesResponse:
        """Takes all allocations under one fence, or none.

        FAILED_PRECONDITION (POOLS_APART): the pools differ in quota domain or durability. Other errors as
        in AllocateResource.
        """
    async def BatchReleaseResources(
        self, request: v1.BatchReleaseResourcesRequest, *, timeout: float | None = None
    ) -> v1.BatchReleaseResourcesResponse:
        """Releases up to 1,000 tokens. Each has its own outcome; none hinders another."""
    async def RenewAllocations(
        self, request: v1.RenewAllocationsRequest, *, timeout: float | None = None
    ) -> v1.RenewAllocationsResponse:
        """Renews up to 1,000 leases. Each has its own outcome. LOST is final: the token has lapsed or was
        released, and the work that it allowed must stop. While a server, a store or the network is away,
        the call is UNAVAILABLE and no lease lapses; it never answers LOST for that reason.
        """
    def WaitForResource(
        self, request: v1.WaitForResourceRequest, *, timeout: float | None = None
    ) -> AsyncIterator[v1.WaitForResourceResponse]:
        """Takes an amount of a pool, and waits for it in the pool's waiting line, ordered by priority, then by
        age. The stream sends the position in the waiting line and the limit that is in the way, again
        whenever these change, and at last the grant. Cancelling the call leaves the waiting line. A call
        that is repeated after UNAVAILABLE joins anew, behind requests of the same priority.

        FAILED_PRECONDITION (NEVER_FITS): a limit is lower than the amount. RESOURCE_EXHAUSTED (LINE_FULL):
        the waiting line has as many requests as it may have. Other errors as in AllocateResource.
        """
    async def GetPool(
        self, request: v1.GetPoolRequest, *, timeout: float | None = None
    ) -> v1.GetPoolResponse:
        """Returns a pool and its use."""
    async def ListPools(
        self, request: v1.ListPoolsRequest, *, timeout: float | None = None
    ) -> v1.ListPoolsResponse:
        """Returns pools ordered by name, in pages."""
    async def DeletePool(
        self, request: v1.DeletePoolRequest, *, timeout: float | None = None
    ) -> v1.DeletePoolResponse:
        """Deletes a pool that nothing uses. A pool of the same name may be registered again, and starts empty.
        Tokens that a caller asks for while the pool is deleted are granted before, or not at all. Recorded
        for ListAuditEntries.

        FAILED_PRECONDITION (POOL_IN_USE): tokens of the pool are held, requests wait for some, or a queue
        or a cluster has a flavor of its name.
        """
    async def FreezePool(
        self, request: v1.FreezePoolRequest, *, timeout: float | None = None
    ) -> v1.FreezePoolResponse:
        """Freezes a pool: nothing more of it is granted to jobs and callers, and no job that uses it is
        preempted or undone. Renewals and releases go on, and what waits keeps its age. It binds before the
        call returns; an admission whose end was requested before is still undone. A pool that is frozen
        stays as it is. Recorded for ListAuditEntries.
        """
    async def UnfreezePool(
        self, request: v1.UnfreezePoolRequest, *, timeout: float | None = None
    ) -> v1.UnfreezePoolResponse:
        """Ends the freeze of a pool. A pool that is not frozen stays as it is. Recorded for ListAuditEntries."""
    async def ListAllocations(
        self, request: v1.ListAllocationsRequest, *, timeout: float | None = None
    ) -> v1.ListAllocationsResponse:
        """Returns tokens that are held, in pages: the oldest grants first, those of a pool of durability REDIS
        in any order.
        """
    async def ForceRelease(
        self, request: v1.ForceReleaseRequest, *, timeout: float | None = None
    ) -> v1.ForceReleaseResponse:
        """Releases a token of any holder. The next renewal by that holder is LOST. Recorded with its reason
        for ListAuditEntries.

        FAILED_PRECONDITION (LIVE_ADMISSION): a job that is admitted holds the token. Cancel the job
        instead.
        """
    async def ReconcileQuota(
        self, request: v1.ReconcileQuotaRequest, *, timeout: float | None = None
    ) -> v1.ReconcileQuotaResponse:
        """Compares the counters, the ledger and the holders, and repairs differences in favor of the ledger.
        While the counters of a quota domain are rebuilt, its grants return UNAVAILABLE for a moment.
        Repairs are recorded for ListAuditEntries.
        """

class RuntimeService:
    """Administers training runtimes: templates of the jobs of a TrainJob, as in Kubeflow Trainer. A
    TrainingRuntime belongs to a namespace, a ClusterTrainingRuntime to the whole installation. Some
    runtimes of the installation are shipped with Gangway: they are always there, and never change. A job
    copies its runtime when it is created. So a runtime can be deleted while jobs use it, and what is done
    to a runtime afterwards changes no job.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    def CreateRuntime(
        self, request: v1.CreateRuntimeRequest, *, timeout: float | None = None
    ) -> v1.CreateRuntimeResponse:
        """Creates a runtime.

        ALREADY_EXISTS (TRAINING_RUNTIME_EXISTS): the namespace or the installation has a runtime of the
        name. FAILED_PRECONDITION (SHIPPED_RUNTIME): a shipped runtime has the name. NOT_FOUND
        (NAMESPACE_NOT_FOUND): the namespace does not exist. RESOURCE_EXHAUSTED
        (TOO_MANY_TRAINING_RUNTIMES): the namespace, or the installation, has 200 runtimes.
        """
    def GetRuntime(
        self, request: v1.GetRuntimeRequest, *, timeout: float | None = None
    ) -> v1.GetRuntimeResponse:
        """Returns one runtime.

        NOT_FOUND (TRAINING_RUNTIME_NOT_FOUND): the runtime does not exist.
        """
    def ListRuntimes(
        self, request: v1.ListRuntimesRequest, *, timeout: float | None = None
    ) -> v1.ListRuntimesResponse:
        """Returns the runtimes of a namespace and of the installation, shipped ones included, without their
        specs. Those of the installation come first; the others are ordered by namespace and name.
        """
    def UpdateRuntime(
        self, request: v1.UpdateRuntimeRequest, *, timeout: float | None = None
    ) -> v1.UpdateRuntimeResponse:
        """Replaces the labels and the spec of a runtime.

        NOT_FOUND (TRAINING_RUNTIME_NOT_FOUND): the runtime does not exist. ABORTED
        (STALE_RESOURCE_VERSION): it has another version than resource_version. FAILED_PRECONDITION
        (SHIPPED_RUNTIME): the runtime is shipped with Gangway.
        """
    def DeleteRuntime(
        self, request: v1.DeleteRuntimeRequest, *, timeout: float | None = None
    ) -> v1.DeleteRuntimeResponse:
        """Deletes a runtime. Jobs keep the runtime that they were created with.

        NOT_FOUND (TRAINING_RUNTIME_NOT_FOUND): the runtime does not exist. FAILED_PRECONDITION
        (SHIPPED_RUNTIME): the runtime is shipped with Gangway.
        """

class AsyncRuntimeService:
    """Administers training runtimes: templates of the jobs of a TrainJob, as in Kubeflow Trainer. A
    TrainingRuntime belongs to a namespace, a ClusterTrainingRuntime to the whole installation. Some
    runtimes of the installation are shipped with Gangway: they are always there, and never change. A job
    copies its runtime when it is created. So a runtime can be deleted while jobs use it, and what is done
    to a runtime afterwards changes no job.

    Every error carries a google.rpc.ErrorInfo whose reason is named below in capitals. INVALID_ARGUMENT
    carries a BadRequest with every field that is wrong.
    """
    async def CreateRuntime(
        self, request: v1.CreateRuntimeRequest, *, timeout: float | None = None
    ) -> v1.CreateRuntimeResponse:
        """Creates a runtime.

        ALREADY_EXISTS (TRAINING_RUNTIME_EXISTS): the namespace or the installation has a runtime of the
        name. FAILED_PRECONDITION (SHIPPED_RUNTIME): a shipped runtime has the name. NOT_FOUND
        (NAMESPACE_NOT_FOUND): the namespace does not exist. RESOURCE_EXHAUSTED
        (TOO_MANY_TRAINING_RUNTIMES): the namespace, or the installation, has 200 runtimes.
        """
    async def GetRuntime(
        self, request: v1.GetRuntimeRequest, *, timeout: float | None = None
    ) -> v1.GetRuntimeResponse:
        """Returns one runtime.

        NOT_FOUND (TRAINING_RUNTIME_NOT_FOUND): the runtime does not exist.
        """
    async def ListRuntimes(
        self, request: v1.ListRuntimesRequest, *, timeout: float | None = None
    ) -> v1.ListRuntimesResponse:
        """Returns the runtimes of a namespace and of the installation, shipped ones included, without their
        specs. Those of the installation come first; the others are ordered by namespace and name.
        """
    async def UpdateRuntime(
        self, request: v1.UpdateRuntimeRequest, *, timeout: float | None = None
    ) -> v1.UpdateRuntimeResponse:
        """Replaces the labels and the spec of a runtime.

        NOT_FOUND (TRAINING_RUNTIME_NOT_FOUND): the runtime does not exist. ABORTED
        (STALE_RESOURCE_VERSION): it has another version than resource_version. FAILED_PRECONDITION
        (SHIPPED_RUNTIME): the runtime is shipped with Gangway.
        """
    async def DeleteRuntime(
        self, request: v1.DeleteRuntimeRequest, *, timeout: float | None = None
    ) -> v1.DeleteRuntimeResponse:
        """Deletes a runtime. Jobs keep the runtime that they were created with.

        NOT_FOUND (TRAINING_RUNTIME_NOT_FOUND): the runtime does not exist. FAILED_PRECONDITION
        (SHIPPED_RUNTIME): the runtime is shipped with Gangway.
        """
