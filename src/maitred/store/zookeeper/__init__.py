"""The ledger's tree in ZooKeeper: the record of batches and jobs where one machine is not enough."""
